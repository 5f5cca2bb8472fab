"""Database work of sockets, in threads that give their connection back each time."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `work(*args, **kwargs)`. Not in the one thread that all requests share, so that no socket waits for
    another's query."""
    result: T = await database_sync_to_async(work, thread_sensitive=False)(*args, **kwargs)
    return result
