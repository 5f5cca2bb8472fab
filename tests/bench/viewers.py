"""Many viewers of one log as raw sockets, in a program of their own: `python -m tests.bench.viewers JSON`.

They offer what a browser offers, compression included, and read frames with as little work as possible, because they
share the machine with what is measured. Prints "ready" when each has its first frame, and one line of JSON at the end.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
import time
import zlib
from array import array
from typing import Any

_HEAD = re.compile(rb'\{"type":"([a-z]+)","from":(\d+),"to":(\d+)')
_STAMP = re.compile(rb'"(\d{19}) ')
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


class Viewer(asyncio.Protocol):
    """One socket. Counts what it gets; `ended` is set once it was closed, has got line `upto`, or all there is."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self._crowd, self._number = crowd, number
        self._buffer = bytearray()
        self._open = False
        self._inflate: Any = None
        self._next = 0
        self.frames = 0
        self.holes = 0
        self.left_out = 0
        self.lines = 0
        self.code = 0
        self.greeted, self.ended = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        crowd = self._crowd
        lines = [
            f"GET {crowd.path_of(self._number)} HTTP/1.1",
            f"Host: {crowd.host}:{crowd.port}",
            f"Origin: http://{crowd.host}:{crowd.port}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
        ]
        if crowd.tokens:
            lines.append(f"Authorization: Bearer {crowd.tokens[self._number % len(crowd.tokens)]}")
        transport.write("\r\n".join([*lines, "", ""]).encode())

    def data_received(self, data: bytes) -> None:
        moment = time.time_ns()
        self._buffer += data
        if not self._open and not self._shake_hands():
            return
        while (frame := self._frame()) is not None:
            self._take(*frame, moment)

    def connection_lost(self, error: Exception | None) -> None:
        self.greeted.set()
        self.ended.set()

    def _shake_hands(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._buffer[:end]).lower()
        del self._buffer[: end + 4]
        assert head.startswith(b"http/1.1 101"), head
        if b"permessage-deflate" in head:
            self._inflate = zlib.decompressobj(wbits=-15)
        self._open = True
        if self._crowd.stalled:
            self._transport.pause_reading()
            self.greeted.set()
        return True

    def _frame(self) -> tuple[int, bool, bytes] | None:
        """(opcode, compressed, payload) of the next whole frame; a server does not mask."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        size, at = buffer[1] & 0x7F, 2
        if size >= 126:
            at = 4 if size == 126 else 10
            if len(buffer) < at:
                return None
            size = int.from_bytes(buffer[2:at], "big")
        if len(buffer) < at + size:
            return None
        first, payload = buffer[0], bytes(buffer[at : at + size])
        del buffer[: at + size]
        assert first & 0x80, "a frame in pieces"
        return first & 0x0F, bool(first & 0x40), payload

    def _take(self, opcode: int, compressed: bool, payload: bytes, moment: int) -> None:
        if opcode == _PING:
            mask = os.urandom(4)
            masked = bytes(byte ^ mask[at & 3] for at, byte in enumerate(payload))
            self._transport.write(bytes([0x80 | _PONG, 0x80 | len(payload)]) + mask + masked)
        elif opcode == _CLOSE:
            self.code = int.from_bytes(payload[:2], "big")
            self.ended.set()
            self._transport.close()
        elif opcode == _TEXT:
            text = self._inflate.decompress(payload + b"\x00\x00\xff\xff") if compressed else payload
            self._heard(text, moment)

    def _heard(self, text: bytes, moment: int) -> None:
        found = _HEAD.match(text)
        assert found is not None, text[:200]
        first, end = int(found[2]), int(found[3])
        if self._next and first != self._next:
            self.holes += 1
        if found[1] == b"skipped":
            self.left_out += end - first
        else:
            self.frames += 1
            self.lines += end - first
            stamps = _STAMP.findall(text)
            if stamps:
                # The oldest line of the frame has waited longest.
                self._crowd.waits.append(moment - int(stamps[0]))
        self._next = end
        self.greeted.set()
        if end > self._crowd.upto or text.endswith(b'"complete":true}'):
            self.ended.set()


class Crowd:
    """All viewers. `spec`: host, port, path (with `{line}` for where to begin), count, and whether they stall."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.host, self.port, self._path = str(spec["host"]), int(spec["port"]), str(spec["path"])
        self.tokens: list[str] = spec["tokens"]
        self.stalled = bool(spec.get("stalled"))
        self.upto = int(spec.get("upto", 2**62))
        self._count, self._apart = int(spec["count"]), int(spec.get("apart", 0))
        self._seconds = float(spec["seconds"])
        # Nanoseconds from a frame's oldest line to its arrival.
        self.waits = array("q")

    def path_of(self, number: int) -> str:
        return self._path.format(line=1 + number * self._apart)

    async def watch(self) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        viewers = []
        for number in range(self._count):
            _, viewer = await loop.create_connection(lambda number=number: Viewer(self, number), self.host, self.port)  # type: ignore[misc]
            viewers.append(viewer)
        await asyncio.wait_for(asyncio.gather(*(viewer.greeted.wait() for viewer in viewers)), 60)
        print("ready", flush=True)
        late = 0
        try:
            await asyncio.wait_for(asyncio.gather(*(viewer.ended.wait() for viewer in viewers)), self._seconds)
        except TimeoutError:
            late = sum(not viewer.ended.is_set() for viewer in viewers)
        waits = sorted(self.waits)
        return {
            "frames": sum(viewer.frames for viewer in viewers),
            "lines": sum(viewer.lines for viewer in viewers),
            "holes": sum(viewer.holes for viewer in viewers),
            "left_out": sum(viewer.left_out for viewer in viewers),
            "late": late,
            "codes": sorted({viewer.code for viewer in viewers}),
            "p50": _rank(waits, 0.50) / 1e9,
            "p99": _rank(waits, 0.99) / 1e9,
            "slowest": _rank(waits, 1) / 1e9,
            "compressed": viewers[0]._inflate is not None,
        }


def _rank(ranked: list[int], share: float) -> float:
    return float(ranked[min(len(ranked) - 1, int(share * len(ranked)))]) if ranked else float("nan")


if __name__ == "__main__":
    print(json.dumps(asyncio.run(Crowd(json.loads(sys.argv[1])).watch())), flush=True)
