"""Database work of sockets, in threads that give their connection back each time."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `work(*args, **kwargs)`.

    Not in the one thread that `sync_to_async` shares among all, so that no socket waits for another's query.
    """
    return await asyncio.to_thread(_with_connection, partial(work, *args, **kwargs))


def _with_connection(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()
