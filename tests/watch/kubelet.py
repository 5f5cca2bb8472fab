"""A kubelet and its container runtime, as far as the log endpoint shows them, with every fault that the real ones have.

The container's log is a row of files; the last one has the log's name. A reader holds one of them: it reads to the end,
and each creation of a file under that name that it has heard of makes it open the name anew, whatever stands there by
then. So a reader that could not send for a while leaves out the files in between, and sends the newest one again for
every further creation it had slept through. It hears of creations only once it has reached the end for the first time.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import datetime

from portal.clusters.specs import ContainerRef, LineBroken, LogGone
from tests.watch.cluster import NOON_NS, FakeCluster, stamp

SECOND = 1_000_000_000
# The kubelet looks at the sizes of logs no more often.
ROTATION_NS = 3 * SECOND


@dataclass
class Reader:
    """One open connection. `cut_after`: bytes that still come before it breaks."""

    file: int
    position: int = 0
    creations: deque[int] | None = None
    cut_after: int | None = None
    # Given up from our side, because nothing came any more.
    silent: bool = False


@dataclass
class Kubelet(FakeCluster):
    """`files`: what the runtime wrote, (time, text) with a line feed at the end of a line or none for a fragment."""

    now_ns: int = NOON_NS
    files: list[list[tuple[int, bytes]]] = field(default_factory=lambda: [[]])
    # Longer lines are written in fragments; bytes are sent in portions.
    fragment: int = 16 * 1024
    portion: int = 1000
    running: bool = True
    deleted: bool = False
    # Nothing can be sent to anybody: the network, the API server or the follower hangs.
    stalled: bool = False
    # The same once so many bytes have been sent.
    stall_after: int | None = None
    # Asked so often where the file begins; and so often before the answer is a failure.
    asked: int = 0
    opened: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self.portion = 1000
        self._changed = asyncio.Event()
        self._readers: list[Reader] = []
        self._rotated_ns = self.now_ns
        self.written: list[tuple[int, bytes]] = []

    def clock(self) -> int:
        return self.now_ns

    def tick(self, ns: int) -> None:
        self.now_ns += ns

    def write(self, text: bytes, *, late_ns: int = 0) -> None:
        """One line, or what is left of one without a line feed. `late_ns`: stamped so long before it was written."""
        moment = self.now_ns - late_ns
        self.written.append((moment, text))
        while len(text) > self.fragment:
            self.files[-1].append((moment, text[: self.fragment]))
            text = text[self.fragment :]
        self.files[-1].append((moment, text))
        self.wake()

    def rotate(self) -> None:
        """As soon as the kubelet looks again; nothing happens to an empty file."""
        if not self.files[-1] or not self.running:
            return
        self.now_ns = max(self.now_ns, self._rotated_ns + ROTATION_NS)
        self._rotated_ns = self.now_ns
        self.files.append([])
        for reader in self._readers:
            if reader.creations is not None:
                reader.creations.append(len(self.files) - 1)
        self.wake()

    def cut(self, after: int) -> None:
        """Break every open connection, so many bytes later."""
        for reader in self._readers:
            reader.cut_after = after
        self.wake()

    def give_up(self) -> None:
        """Break every open connection as one that has been silent for too long."""
        for reader in self._readers:
            reader.silent = True
        self.cut(0)

    def end(self) -> None:
        self.running = False
        self.wake()

    def vanish(self) -> None:
        self.deleted = True
        self.end()

    def stall(self, *, on: bool) -> None:
        self.stalled = on
        self.wake()

    def all_sent(self) -> bool:
        """Somebody has read the newest file to its end and waits for what follows."""
        last, end = len(self.files) - 1, len(self.files[-1])
        return any(
            reader.creations is not None and not reader.creations and (reader.file, reader.position) == (last, end)
            for reader in self._readers
        )

    def wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def log_head(self, ref: ContainerRef) -> bytes | None:
        self.asked += 1
        if self.deleted:
            raise LogGone("the pod is gone", passing=False)
        first = next(iter(self.files[-1]), None)
        return b"" if first is None else (stamp(first[0]) + first[1])[:64]

    async def read_log(self, ref: ContainerRef, *, since: datetime | None, follow: bool) -> AsyncGenerator[bytes, None]:
        if self.deleted:
            raise LogGone("the pod is gone", passing=False)
        self.opened += 1
        floor = 0 if since is None else int(since.timestamp()) * SECOND
        reader = Reader(len(self.files) - 1)
        self._readers.append(reader)
        sent = 0
        try:
            async for data in self._sent(reader, floor, follow):
                for start in range(0, len(data), self.portion):
                    part = data[start : start + self.portion]
                    sent += len(part)
                    while self.stalled or (self.stall_after is not None and sent > self.stall_after):
                        await self._changed.wait()
                    if reader.cut_after is not None and len(part) >= reader.cut_after:
                        yield part[: reader.cut_after]
                        raise LineBroken("unexpected EOF")
                    if reader.cut_after is not None:
                        reader.cut_after -= len(part)
                    yield part
        finally:
            self._readers.remove(reader)

    async def _sent(self, reader: Reader, floor: int, follow: bool) -> AsyncGenerator[bytes, None]:
        """The loop of the kubelet's own reader."""
        new_line = found = True
        while True:
            file = self.files[reader.file]
            if reader.position < len(file):
                ns, text = file[reader.position]
                reader.position += 1
                if ns >= floor:
                    yield (stamp(ns) if new_line else b"") + text
                new_line = text.endswith(b"\n")
                continue
            if not follow or not found:
                return
            if reader.cut_after is not None:
                raise LineBroken("unexpected EOF", silent=reader.silent)
            if reader.creations is None:
                reader.creations = deque()
                continue
            if not self.running:
                found = False
            elif reader.creations:
                reader.creations.popleft()
                reader.file, reader.position = len(self.files) - 1, 0
            else:
                await self._changed.wait()
