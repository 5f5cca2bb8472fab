"""A cluster for tests of the watcher: its log endpoint keeps Kubernetes' contract, and breaks when told to."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from portal.clusters.specs import (
    AttemptFacts,
    ContainerRef,
    Created,
    JobSpec,
    LineBroken,
    LogGone,
    ObjectRef,
    QueueSnapshot,
    TeamSpace,
)

NOON_NS = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()) * 1_000_000_000


def stamp(ns: int) -> bytes:
    moment = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S").encode() + b".%09dZ " % (ns % 1_000_000_000)


@dataclass
class Log:
    """A container's log file: (time, text) fragments as the runtime wrote them."""

    fragments: list[tuple[int, bytes]] = field(default_factory=list)
    closed: bool = False
    # The pod is gone: nothing can be read any more.
    gone: bool = False
    grown: asyncio.Event = field(default_factory=asyncio.Event)
    opened: int = 0

    def write(self, *texts: bytes, ns: int = NOON_NS) -> None:
        self.fragments += [(ns, text) for text in texts]
        self.grown.set()

    def close(self) -> None:
        self.closed = True
        self.grown.set()


class FakeCluster:
    """Implements the gateway's `Backend`.

    `cuts`: bytes after which the next connections break; `portion`: bytes sent at a time.
    """

    def __init__(self) -> None:
        self.logs: dict[tuple[str, str, int], Log] = {}
        self.facts: asyncio.Queue[AttemptFacts | Exception] = asyncio.Queue()
        self.cuts: list[int] = []
        self.portion = 1000
        self.expected: Mapping[str, tuple[str, int]] | None = None
        self.observers = 0
        self.reading = 0
        self.most_reading = 0

    def log(self, ref: ContainerRef) -> Log:
        return self.logs.setdefault((ref.pod_uid, ref.container, ref.restart), Log())

    async def observe(self) -> AsyncGenerator[AttemptFacts, None]:
        self.observers += 1
        try:
            while True:
                found = await self.facts.get()
                if isinstance(found, Exception):
                    raise found
                yield found
        finally:
            self.observers -= 1

    def expect(self, refs: Mapping[str, tuple[str, int]]) -> None:
        self.expected = dict(refs)

    async def read_log(self, ref: ContainerRef, *, since: datetime | None, follow: bool) -> AsyncGenerator[bytes, None]:
        log = self.log(ref)
        log.opened += 1
        self.reading += 1
        self.most_reading = max(self.most_reading, self.reading)
        left = self.cuts.pop(0) if self.cuts else None
        try:
            async for data in self._bytes(log, since, follow):
                for start in range(0, len(data), self.portion):
                    part = data[start : start + self.portion]
                    if left is not None and len(part) >= left:
                        yield part[:left]
                        raise LineBroken("unexpected EOF")
                    left = None if left is None else left - len(part)
                    yield part
        finally:
            self.reading -= 1

    async def log_head(self, ref: ContainerRef) -> bytes | None:
        log = self.log(ref)
        if log.gone:
            raise LogGone("the pod is gone", passing=False)
        return (stamp(log.fragments[0][0]) + log.fragments[0][1])[:64] if log.fragments else b""

    async def _bytes(self, log: Log, since: datetime | None, follow: bool) -> AsyncGenerator[bytes, None]:
        floor = 0 if since is None else int(since.timestamp()) * 1_000_000_000
        position, at_line_start = 0, True
        while True:
            if log.gone:
                raise LogGone("the pod is gone", passing=False)
            log.grown.clear()
            found = []
            while position < len(log.fragments):
                ns, text = log.fragments[position]
                if ns >= floor:
                    found.append(stamp(ns) + text if at_line_start else text)
                # Exactly as the kubelet: a skipped fragment, too, decides whether the next begins a line.
                at_line_start = text.endswith(b"\n")
                position += 1
            if found:
                yield b"".join(found)
            if not follow or log.closed:
                return
            await log.grown.wait()

    def provision(self, space: TeamSpace) -> None: ...

    def create(self, spec: JobSpec, secrets: Mapping[str, str]) -> Created:
        raise NotImplementedError

    def delete(self, ref: ObjectRef) -> bool:
        raise NotImplementedError

    def manifests(self, spec: JobSpec) -> list[dict[str, Any]]:
        raise NotImplementedError

    def read_queues(self) -> QueueSnapshot:
        raise NotImplementedError

    def write_queues(self, snapshot: QueueSnapshot) -> None: ...
