"""`/live/v1/streams/<id>/events?from=<line>`: a log as Server-Sent Events, for networks that let no socket through.

It is the socket itself, spoken in another way: the same rights, looks, limits and frames. `id:` is the next line, so a
client that reconnects with `Last-Event-ID` gets each line once.
https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
import json
import re
from urllib.parse import parse_qsl, urlencode

from portal.live.asgi import Application, Message, Receive, Scope, Send
from portal.live.socket import WORDS, Close
from portal.live.streams import StreamSocket

# Seconds without a frame after which a comment is sent, so that no proxy takes the connection for dead.
KEEP_ALIVE = 15.0
_PATH = re.compile(r"/live/v1/streams/([^/]{1,100})/events/?")
_TO = re.compile(r'\{"type":"[a-z]+","from":\d+,"to":(\d+)')
_STATUS = {
    Close.DONE: 204,
    Close.TRY_AGAIN: 503,
    Close.BAD_REQUEST: 400,
    Close.SIGN_IN: 401,
    Close.NO_LONGER_YOURS: 403,
    Close.NOT_FOUND: 404,
    Close.EXPIRED: 410,
    Close.TOO_MUCH: 413,
    Close.TOO_MANY: 429,
    Close.DAMAGED: 500,
}
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    # nginx holds an answer back otherwise.
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


def with_events(pages: Application, events: Application) -> Application:
    """HTTP requests of this door to `events`, all others to `pages`."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        found = _PATH.fullmatch(scope["path"])
        if found is None:
            await pages(scope, receive, send)
            return
        await events({**scope, "url_route": {"kwargs": {"key": found[1]}}}, receive, send)

    return application


async def stream_events(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application; `scope` carries the session and the stream's id as `url_route`."""
    if scope["method"] != "GET":
        await _refuse(send, 405, "Only GET.")
        return
    await _Talk(receive, send).serve(scope)


class _Talk:
    """Stands between a socket and an HTTP answer."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._began = False
        self._asked = False
        self._over = False
        self._writing = asyncio.Lock()
        self._spoke = asyncio.Event()

    async def serve(self, scope: Scope) -> None:
        keeping = asyncio.create_task(self._keep_alive())
        try:
            await StreamSocket(_resumed(scope), self.receive, self.send).serve()
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def receive(self) -> Message:
        """What a socket would hear: that it is opened, and that its client has gone."""
        if not self._asked:
            self._asked = True
            return {"type": "websocket.connect"}
        while (await self._receive())["type"] != "http.disconnect":
            pass
        return {"type": "websocket.disconnect", "code": 1001}

    async def send(self, message: Message) -> None:
        if message["type"] == "websocket.send":
            await self._write(_event(message["text"]))
        elif message["type"] == "websocket.close":
            await self._end(Close(message["code"]), str(message["reason"]))

    async def _write(self, data: bytes, *, last: bool = False) -> None:
        async with self._writing:
            if self._over:
                return
            if not self._began:
                self._began = True
                await self._send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            self._over = last
            await self._send({"type": "http.response.body", "body": data, "more_body": not last})
        self._spoke.set()

    async def _end(self, code: Close, reason: str) -> None:
        """Before the first frame an HTTP status says why; later an event does."""
        if not self._began:
            async with self._writing:
                self._over = True
            await _refuse(self._send, _STATUS[code], reason or WORDS[code])
            return
        body = json.dumps({"code": int(code), "reason": reason})
        await self._write(f"event: end\ndata: {body}\n\n".encode(), last=True)

    async def _keep_alive(self) -> None:
        while True:
            self._spoke.clear()
            try:
                async with asyncio.timeout(KEEP_ALIVE):
                    await self._spoke.wait()
            except TimeoutError:
                if self._began:
                    await self._write(b": keepalive\n\n")


def _event(text: str) -> bytes:
    """A frame, which is one line of JSON, under the number that resumes behind it."""
    found = _TO.match(text)
    return (f"id: {found[1]}\n" if found else "").encode() + b"data: " + text.encode() + b"\n\n"


def _resumed(scope: Scope) -> Scope:
    """`Last-Event-ID` stands for `from`, as a browser that reconnects sends it."""
    last = next((value for name, value in scope["headers"] if name.lower() == b"last-event-id"), None)
    if last is None:
        return scope
    query = [(name, value) for name, value in parse_qsl(scope["query_string"].decode("latin-1")) if name != "from"]
    query.append(("from", last.decode("latin-1")))
    return {**scope, "query_string": urlencode(query).encode("latin-1")}


async def _refuse(send: Send, status: int, words: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if status == 204 else words.encode()})
