"""The least that answers: what an ASGI server costs with nothing behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
_HEAD = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]}
_BODY = {"type": "http.response.body", "body": b"<!doctype html><title>hello</title><h1>hello</h1>"}


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """One page for every address."""
    if scope["type"] == "http":
        await send(_HEAD)
        await send(_BODY)
