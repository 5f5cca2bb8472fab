"""One kind of object kept in step by list and watch, for ever and through every kind of trouble.

The contract of list and watch: https://kubernetes.io/docs/reference/using-api/api-concepts/ (efficient detection of
changes; bookmarks; 410 Gone).
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from typing import Any, Protocol

from portal.clusters.kube.cache import Kind
from portal.clusters.kube.connection import Connection
from portal.clusters.kube.facts import Object, metadata, uid
from portal.clusters.kube.streams import TROUBLE, Refusal, Session, lines
from portal.clusters.kube.values import count, items, mapping, text
from portal.clusters.specs import PassingError

logger = logging.getLogger(__name__)

PAGE = 500
# Seconds. The server ends a watch by itself; bookmarks come about once a minute, so more silence is a dead line.
WATCH, SILENCE = 240, 90.0
# The answer to a watch begins at once; only its events take their time.
BEGIN = 15.0
RELIST_AT_MOST_EVERY = 5.0
FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0
GONE = 410
# Answers in a row that lead nowhere, after which a fresh list is tried: perhaps there is no way on from this version.
NONSENSE = 3


class Sink(Protocol):
    """Who is told."""

    def page(self, kind: Kind, things: list[Object]) -> None:
        """A part of a list: these objects exist."""

    def listed(self, kind: Kind, uids: set[str]) -> None:
        """A list is complete, after a start and after every gap: nothing else exists."""

    def changed(self, kind: Kind, deed: str, thing: Object) -> None:
        """ADDED, MODIFIED or DELETED."""

    def heard(self) -> None:
        """Something arrived from the cluster."""


class Reflector:
    """Keeps a `Sink` informed about one kind. `interrupt` makes it drop its connection and dial anew."""

    def __init__(self, kind: Kind, path: str, selector: str, connection: Connection, sink: Sink) -> None:
        self._kind: Kind = kind
        self._path = path
        self._query = {"labelSelector": selector}
        self._connection = connection
        self._sink = sink
        self._version = ""
        self._broken = asyncio.Event()
        self._listed_at = float("-inf")
        self._failures = 0
        self._nonsense = 0
        self._silent = False

    def interrupt(self) -> None:
        """The line is known to be dead although it looks alive."""
        self._broken.set()

    async def run(self) -> None:
        """Never returns; survives all trouble of the network and of the server."""
        while True:
            try:
                async with Session(self._connection) as session:
                    while True:
                        await self._unless_broken(self._once(session))
            except Refusal as error:
                if error.status == GONE:
                    self._version = ""
                    continue
                await self._rest(f"{error.status} {error.message}", wait=error.retry_after, nonsense=True)
            except ValueError as error:
                await self._rest(f"{type(error).__name__} {error}".strip(), nonsense=True)
            except (PassingError, *TROUBLE) as error:
                await self._rest(f"{type(error).__name__} {error}".strip())

    async def _once(self, session: Session) -> None:
        """One list if there is no place to go on from, then one watch until the server ends it."""
        if not self._version:
            await self._list(session)
        began = asyncio.get_running_loop().time()
        await self._watch(session)
        self._failures = self._nonsense = 0
        if asyncio.get_running_loop().time() - began < 1:
            # A server or proxy that ends every watch at once must not be asked a thousand times a second.
            await asyncio.sleep(FIRST_WAIT)

    async def _list(self, session: Session) -> None:
        loop = asyncio.get_running_loop()
        rest = self._listed_at + RELIST_AT_MOST_EVERY * random.uniform(1.0, 1.5) - loop.time()  # noqa: S311
        if rest > 0:
            await asyncio.sleep(rest)
        self._listed_at = loop.time()
        uids: set[str] = set()
        query = {**self._query, "limit": str(PAGE)}
        while True:
            page = await session.json(self._path, query)
            self._sink.heard()
            things: list[Object] = list(items(page.get("items")))
            self._sink.page(self._kind, things)
            uids |= {uid(thing) for thing in things}
            about = metadata(page)
            more = text(about.get("continue"))
            if not more:
                break
            query["continue"] = more
        self._sink.listed(self._kind, uids)
        self._version = text(about.get("resourceVersion"))
        self._recovered()

    async def _watch(self, session: Session) -> None:
        query = {
            **self._query,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH),
        }
        async with session.get(self._path, query, silence=SILENCE, begin=BEGIN) as response:
            self._recovered()
            async for line in lines(self._heard(response.content.iter_any())):
                event = json.loads(line)
                if isinstance(event, dict):
                    self._apply(event)
                self._failures = self._nonsense = 0

    async def _heard(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        async for chunk in chunks:
            self._sink.heard()
            yield chunk

    def _apply(self, event: Mapping[str, Any]) -> None:
        deed, thing = text(event.get("type")), mapping(event.get("object"))
        if deed == "ERROR":
            raise Refusal(count(thing.get("code")), text(thing.get("message")))
        if deed in {"ADDED", "MODIFIED", "DELETED"}:
            self._sink.changed(self._kind, deed, thing)
        self._version = text(metadata(thing).get("resourceVersion")) or self._version

    # --- trouble ---------------------------------------------------------------------------------------------------

    async def _unless_broken(self, work: Coroutine[Any, Any, None]) -> None:
        """`work`, or PassingError as soon as the line is said to be broken."""
        task = asyncio.ensure_future(work)
        alarm = asyncio.ensure_future(self._broken.wait())
        try:
            await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise PassingError("the API server does not answer")
            await task
        finally:
            self._broken.clear()
            for each in (task, alarm):
                each.cancel()
            await asyncio.gather(task, alarm, return_exceptions=True)

    async def _rest(self, why: str, *, wait: float | None = None, nonsense: bool = False) -> None:
        """Wait before the next try, longer each time. `nonsense`: the server answered, and it was of no use."""
        if not self._silent:
            logger.warning("the watch of %s is interrupted: %s", self._kind, why)
        self._silent = True
        self._nonsense += nonsense
        if self._nonsense >= NONSENSE:
            self._version, self._nonsense = "", 0
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(self._failures, 10))
        self._failures += 1
        await asyncio.sleep(wait if wait is not None else longest * random.uniform(0.5, 1.0))  # noqa: S311

    def _recovered(self) -> None:
        if self._silent:
            logger.info("the watch of %s goes on", self._kind)
        self._silent = False
