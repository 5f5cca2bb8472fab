"""Is the API server alive? A watch cannot tell: a stopped server keeps its sockets open and is silent, like an idle
one."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from portal.clusters.kube.connection import Connection
from portal.clusters.kube.reflector import Reflector
from portal.clusters.kube.streams import TROUBLE, Refusal, Session
from portal.clusters.specs import PassingError

logger = logging.getLogger(__name__)

# Seconds. Two misses in a row count, because one may be a busy machine.
PERIOD, PATIENCE, MISSES = 10.0, 3.0, 2


async def beat(connection: Connection, heard: Callable[[], None], reflectors: Sequence[Reflector]) -> None:
    """Ask for `/readyz` again and again; after two misses in a row make the reflectors dial anew. Never returns."""
    misses = 0
    while True:
        try:
            async with Session(connection) as session:
                while True:
                    await asyncio.sleep(PERIOD if misses == 0 else PATIENCE)
                    await _ask(session)
                    heard()
                    misses = 0
        except (PassingError, *TROUBLE):
            misses += 1
        if misses >= MISSES:
            for reflector in reflectors:
                reflector.interrupt()


async def _ask(session: Session) -> None:
    try:
        async with session.get("/readyz", silence=PATIENCE, whole=PATIENCE) as response:
            await response.read()
    except Refusal:
        # Not ready, or not allowed to ask: it answers, and that is all that is asked here.
        pass
