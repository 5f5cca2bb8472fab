"""Threads for the database's work, so that the loop that listens to the cluster never waits for a query."""

import asyncio
import logging
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connection

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# Seconds that queries have to end when the watcher does.
FAREWELL = 5.0

# What a database says that is down, restarting or out of connections: worth waiting for.
DATABASE_DOWN = (OperationalError, InterfaceError)


class Desk:
    """A few threads, each with its own database connection, given back after every piece of work."""

    def __init__(self, name: str, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"watch-{name}")

    async def call(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work(*args, **kwargs)`, done in a thread."""
        job = partial(_with_connection, partial(work, *args, **kwargs))
        return await asyncio.get_running_loop().run_in_executor(self._pool, job)

    async def close(self) -> None:
        """No new work; waits a while for what runs, whose transaction nobody can cancel."""
        ending = asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)
        try:
            async with asyncio.timeout(FAREWELL):
                await ending
        except TimeoutError:
            logger.warning("watch: a query still runs; leaving without it")


def _with_connection(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    finally:
        if connection.vendor == "sqlite":
            # The thread's own file, dear to open again; a server's connections are lent to many, and given back.
            connection.close_at = None
        close_old_connections()


class Backoff:
    """Growing, jittered pauses in seconds: 0.1 to 0.2, doubling, up to `most`."""

    def __init__(self, *, first: float = 0.2, most: float = 10.0) -> None:
        self._first, self._most = first, most
        self._next = first

    def pause(self) -> float:
        pause, self._next = self._next, min(self._next * 2, self._most)
        return pause * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, guards nothing

    def reset(self) -> None:
        self._next = self._first


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Sleep, but no longer than until the event; whether it is set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def wait_for_any(*events: asyncio.Event, seconds: float) -> None:
    """Sleep, but no longer than until the first of the events."""
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
