"""Asynchronous reads over HTTP/1.1, which carries logs at twice the speed of HTTP/2."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import aiohttp

from portal.clusters.kube.connection import Connection

CONNECT = 5.0
# A single object cannot be larger than etcd's 1.5 MiB; more in one line is not a line.
LONGEST_LINE = 32 * 1024 * 1024
# What may go wrong between two machines. ValueError: an address or a header that is none.
TROUBLE = (aiohttp.ClientError, OSError, TimeoutError, ValueError)


class Refusal(Exception):
    """The API server answered with an error. `status` is HTTP's, or that of an ERROR event; `message` its words."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.message = message
        self.retry_after = retry_after


class Session:
    """Connections of one event loop, with the credentials of a `Connection`. An async context manager."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # Reading credentials may run a helper program, which must not hold up the loop.
        tls = await asyncio.to_thread(self._connection.tls)
        connector = aiohttp.TCPConnector(limit=0, ssl=tls if tls is not None else True)
        self._http = aiohttp.ClientSession(connector=connector, trust_env=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.close()

    @asynccontextmanager
    async def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        silence: float,
        whole: float | None = None,
        begin: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a GET, its body not yet read.

        In seconds: `silence` without a byte counts as a broken line, `whole` is for everything, `begin` until the
        answer begins (of a log that is followed it may begin with the first line only). Raises `Refusal`, or one of
        `TROUBLE`.
        """
        if self._http is None:
            raise RuntimeError("the session is not open")
        headers = await asyncio.to_thread(self._connection.authorization)
        # Identity: the server would otherwise hold lines of a log back until its compressor has enough of them.
        headers |= {"Accept": "*/*", "User-Agent": "beamtime", "Accept-Encoding": "identity"}
        async with asyncio.timeout(begin):
            response = await self._http.get(
                self._connection.host + path,
                params=query,
                headers=headers,
                proxy=self._connection.proxy,
                server_hostname=self._connection.server_name,
                timeout=aiohttp.ClientTimeout(total=whole, connect=CONNECT, sock_connect=CONNECT, sock_read=silence),
                allow_redirects=False,
            )
        async with response:
            if response.status != 200:
                await self._refuse(response)
            yield response

    async def json(self, path: str, query: Mapping[str, str] | None = None, *, whole: float = 30.0) -> dict[str, Any]:
        """An object. Raises `Refusal`, or one of `TROUBLE`."""
        async with self.get(path, query, silence=whole, whole=whole) as response:
            found = json.loads(await response.read())
        if not isinstance(found, dict):
            raise ValueError(f"{path} is not an object")
        return found

    async def _refuse(self, response: aiohttp.ClientResponse) -> None:
        body = await response.content.read(64 * 1024)
        if response.status == 401:
            await asyncio.to_thread(self._connection.reload)
        try:
            message = str(json.loads(body)["message"])
        except (ValueError, LookupError, TypeError):
            message = body[:200].decode(errors="replace").strip()
        wait = response.headers.get("Retry-After", "")
        raise Refusal(response.status, message, float(wait) if wait.isascii() and wait.isdigit() else None)


async def lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The complete lines of a byte stream, however it is cut; a torn last line is left out, for it will come again.

    Raises ValueError for a line that cannot be one.
    """
    rest = bytearray()
    async for chunk in chunks:
        rest += chunk
        if b"\n" not in chunk:
            if len(rest) > LONGEST_LINE:
                raise ValueError("a line without end")
            continue
        whole, _, tail = bytes(rest).rpartition(b"\n")
        rest = bytearray(tail)
        for line in whole.split(b"\n"):
            yield line
