"""The reference of live viewing: the same frames to as many sockets, with uvicorn and nothing else.

An ASGI application. `/live`: once `BARE_VIEWERS` sockets are there, `BARE_FRAMES` frames at `BARE_RATE` a second, each
to all. `/much`: as many large frames as the socket takes, for viewers that do not read.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any

from tests.bench.hello import Receive, Send
from tests.bench.hello import app as hello
from tests.bench.logverbs import LINES_A_PORTION

_VIEWERS = int(os.environ.get("BARE_VIEWERS", "1"))
_FRAMES = int(os.environ.get("BARE_FRAMES", "1"))
_RATE = float(os.environ.get("BARE_RATE", "1"))
_queues: list[asyncio.Queue[str]] = []
_tasks: list[asyncio.Task[None]] = []


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Sockets; any other request gets a page of one line."""
    if scope["type"] != "websocket":
        await hello(scope, receive, send)
        return
    await receive()
    await send({"type": "websocket.accept"})
    if scope["path"] == "/much":
        text = _frame(1, 500)
        while True:
            await send({"type": "websocket.send", "text": text})
    queue: asyncio.Queue[str] = asyncio.Queue()
    _queues.append(queue)
    await send({"type": "websocket.send", "text": _frame(1, 1)})
    if len(_queues) == _VIEWERS:
        _tasks.append(asyncio.create_task(_speak()))
    for _ in range(_FRAMES):
        await send({"type": "websocket.send", "text": await queue.get()})
    await receive()


async def _speak() -> None:
    await asyncio.sleep(1)
    begin, line = time.monotonic(), 2
    for number in range(_FRAMES):
        await asyncio.sleep(max(0.0, begin + number / _RATE - time.monotonic()))
        text = _frame(line, LINES_A_PORTION)
        line += LINES_A_PORTION
        for queue in _queues:
            queue.put_nowait(text)


def _frame(first: int, count: int) -> str:
    moment = time.time_ns()
    rows = [[n, moment // 1_000_000, f"{moment} step {n} of a training that says a little, loss=0.123456 lr=1e-5"]
            for n in range(first, first + count)]  # fmt: skip
    return json.dumps(
        {"type": "lines", "from": first, "to": first + count, "lines": rows, "open": None, "complete": False},
        separators=(",", ":"),
    )
