"""A way to the API server, request by request and as it flows; the logs can be cut while all else goes through."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

# Between two hops, not between two ends.
_OF_A_HOP = frozenset({"host", "connection", "keep-alive", "transfer-encoding", "content-length", "upgrade"})
_HANDED_ON = ("Content-Type", "Retry-After", "Audit-Id")


class Relay:
    """Forwards to the API server that a kubeconfig names, as the account of that file; `kubeconfig` leads here.

    `certificate`: files of certificate and key for a line with TLS, as the API server's own is; plain HTTP without.
    """

    def __init__(self, kubeconfig: Path, folder: Path, *, certificate: tuple[Path, Path] | None = None) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._upstream = str(cluster["server"]).rstrip("/")
        # kubectl tells no secret to a plain address.
        self._token = str(config["users"][0]["user"]["token"])
        trust = folder / "relay-ca.crt"
        trust.write_bytes(base64.b64decode(cluster.pop("certificate-authority-data")))
        self._trust = ssl.create_default_context(cafile=str(trust))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        port, self._tls = self._listener.getsockname()[1], None
        if certificate is None:
            cluster["server"] = f"http://127.0.0.1:{port}"
        else:
            cluster["server"] = f"https://127.0.0.1:{port}"
            cluster["certificate-authority-data"] = base64.b64encode(certificate[0].read_bytes()).decode()
            self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._tls.load_cert_chain(*certificate)
        self.address = cluster["server"]
        self.kubeconfig = folder / "relay.kubeconfig"
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(config))
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._logs: set[asyncio.Transport] = set()
        self._cut = threading.Event()
        # Requests for a log that were refused while the logs were cut.
        self.refused = 0

    # -- used from outside its thread

    @contextlib.contextmanager
    def open(self) -> Iterator[Self]:
        """In a thread of its own."""
        ready, ending = threading.Event(), asyncio.Event()

        async def work() -> None:
            self._loop = asyncio.get_running_loop()
            await self.serve(ready.set, ending)

        thread = threading.Thread(target=lambda: asyncio.run(work()), daemon=True)
        thread.start()
        if not ready.wait(30):
            raise TimeoutError("the relay did not begin to serve")
        assert self._loop is not None
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(ending.set)
            thread.join(30)

    def cut_logs(self) -> None:
        """Break every log that is being read, and refuse every further one, until `mend_logs`."""
        self._cut.set()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._abort_logs)

    def mend_logs(self) -> None:
        self._cut.clear()

    # -- in its loop

    async def serve(self, ready: Callable[[], None], ending: asyncio.Event) -> None:
        """Until `ending` is set; `ready` is called once it listens."""
        connector = aiohttp.TCPConnector(limit=0, ssl=self._trust)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self._session:
            application = web.Application(client_max_size=64 * 1024 * 1024)
            application.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
            await runner.setup()
            await web.SockSite(runner, self._listener, ssl_context=self._tls).start()
            ready()
            try:
                await ending.wait()
            finally:
                await runner.cleanup()

    async def answer(self, request: web.Request) -> web.StreamResponse | None:
        """An answer of one's own instead of the API server's; None: forward it."""
        return None

    def _abort_logs(self) -> None:
        for transport in self._logs:
            transport.abort()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        own = await self.answer(request)
        if own is not None:
            return own
        transport = request.transport
        if not request.path.endswith("/log") or transport is None:
            return await self._forward(request)
        if self._cut.is_set():
            self.refused += 1
            transport.abort()
            return web.Response(status=502)
        self._logs.add(transport)
        try:
            return await self._forward(request)
        finally:
            self._logs.discard(transport)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        assert self._session is not None
        body = await request.read()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_A_HOP}
        headers.setdefault("Authorization", f"Bearer {self._token}")
        asked = self._session.request(
            request.method,
            URL(self._upstream + request.raw_path, encoded=True),
            data=body or None,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            allow_redirects=False,
        )
        async with asked as upstream:
            handed = {name: upstream.headers[name] for name in _HANDED_ON if name in upstream.headers}
            response = web.StreamResponse(status=upstream.status, headers=handed)
            await response.prepare(request)
            async for data in upstream.content.iter_any():
                await response.write(data)
            await response.write_eof()
            return response
