"""Bytes of a connection, read ahead a little, so that many small pieces are taken in at once."""

import asyncio
from collections.abc import AsyncIterator

# Bytes that are read ahead while others are being stored; then the connection has to wait.
AHEAD = 512 * 1024


class Inlet:
    """Reads `chunks` in a task of its own. `ready`: there is something to take, or nothing will come."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._parts: list[bytes] = []
        self._size = 0
        self._room = asyncio.Event()
        self.ready = asyncio.Event()
        self._task = asyncio.create_task(self._read())

    def take(self) -> bytes | None:
        """What has come; None at the end of the stream. Raises what ended the connection, behind its last bytes."""
        if self._parts:
            data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._parts, self._size = [], 0
            self._room.set()
            if not self._task.done():
                self.ready.clear()
            return data
        if self._task.done():
            self._task.result()
            return None
        self.ready.clear()
        return b""

    async def close(self) -> None:
        """Stop reading; a generator that is still running cannot be closed."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _read(self) -> None:
        try:
            async for data in self._chunks:
                self._parts.append(data)
                self._size += len(data)
                self.ready.set()
                if self._size >= AHEAD:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._finished()

    def _finished(self) -> None:
        # Once the task counts as done.
        asyncio.get_running_loop().call_soon(self.ready.set)
