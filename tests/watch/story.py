"""A container, its kubelet and the watcher that reads its log, for tests of what may happen between them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

from asgiref.sync import sync_to_async
from django.db import connections

from portal.clusters.specs import ContainerRef
from portal.jobs.models import Job
from portal.logs import selectors
from portal.logs.models import Cause, Gap, Stream
from portal.logs.specs import Record
from portal.watch.desk import Desk
from portal.watch.follower import Follower
from portal.watch.slots import Slots
from tests.watch.cluster import NOON_NS
from tests.watch.conftest import until
from tests.watch.kubelet import SECOND, Kubelet

_numbers = count()


@dataclass
class Story:
    """One container, its kubelet, and the watcher that reads it."""

    job: Job
    desk: Desk
    kubelet: Kubelet = field(default_factory=Kubelet)
    ref: ContainerRef = field(
        default_factory=lambda: ContainerRef(
            cluster="default", namespace="bt-vision", pod="p", pod_uid=f"uid-{next(_numbers)}", container="main"
        )
    )
    # As small as any: so much comes together in a test.
    file_bytes: int = 256 * 1024
    follower: Follower | None = None
    task: "asyncio.Task[bool] | None" = None

    def begin(self) -> None:
        self.follower = Follower(
            job_id=str(self.job.pk),
            attempt=1,
            pod_index=0,
            ref=self.ref,
            backend=self.kubelet,
            desk=self.desk,
            slots=Slots(10),
            fence=None,
            stop=asyncio.Event(),
            started_at=datetime.fromtimestamp(NOON_NS // SECOND, UTC),
            file_bytes=self.file_bytes,
            look_every=0.05,
            clock=self.kubelet.clock,
        )
        self.task = asyncio.create_task(self.follower.run())

    async def kill(self) -> None:
        """As SIGKILL would: nothing more is stored."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.begin()

    async def caught_up(self) -> None:
        """The last line that was written is stored."""
        await until(self._holds_the_last)

    async def _holds_the_last(self) -> bool:
        _text, records, _gaps = await self.stored()
        return bool(records) and records[-1] == Record(*self.kubelet.written[-1])

    async def ended(self) -> None:
        assert self.follower is not None
        assert self.task is not None
        self.kubelet.stall(on=False)
        self.kubelet.end()
        self.follower.gone = self.kubelet.deleted
        self.follower.ended.set()
        async with asyncio.timeout(20):
            assert await self.task

    @sync_to_async
    def stored(self) -> tuple[bytes, list[Record], list[Gap]]:
        stream = Stream.objects.filter(pod_uid=self.ref.pod_uid).first()
        if stream is None:
            return b"", [], []
        records = list(selectors.newest_first(stream.pk))[::-1]
        return b"".join(selectors.content(stream)), records, selectors.gaps_of(stream)


@asynccontextmanager
async def following(job: Job) -> AsyncIterator[Story]:
    desk = Desk("test", 1)
    story = Story(job, desk)
    story.begin()
    try:
        yield story
    finally:
        if story.task is not None:
            story.task.cancel()
            await asyncio.gather(story.task, return_exceptions=True)
        await desk.close()
        await sync_to_async(connections.close_all)()


async def assert_exact(story: Story, *, gaps: int | None = None, accidents: int = 0) -> list[Gap]:
    """Nothing doubled, nothing out of order, and what is missing lies in a gap.

    A gap in which nothing is missing may be declared only once for each of so many `accidents`, of which nobody can
    know what they cost: the reader was away or could not send while a file was changed.
    """
    _text, records, found = await story.stored()
    written = [Record(*each) for each in story.kubelet.written]
    rest = iter(written)
    for record in records:
        assert record in rest, f"{record} is doubled, out of order, or was never written"
    bounds = [(gap.after_ns or 0, gap.until_ns or 1 << 62) for gap in found]
    kept = set(records)
    for record in written:
        if record not in kept:
            assert any(after <= record.time_ns <= before for after, before in bounds), f"{record} is missing: {bounds}"
    missing = [record for record in written if record not in kept]
    needless = [
        gap
        for gap, (after, before) in zip(found, bounds, strict=True)
        if gap.cause != Cause.DELETED and not any(after <= record.time_ns <= before for record in missing)
    ]
    assert len(needless) <= accidents, f"nothing is missing at {needless}"
    if gaps is not None:
        assert len(found) == gaps, found
    return found


def lines(story: Story, number: int, *, every_ns: int = 1_000_000, width: int = 10) -> None:
    for _ in range(number):
        story.kubelet.tick(every_ns)
        story.kubelet.write(b"line %*d\n" % (width, len(story.kubelet.written)))


Tale = Callable[[Story], Awaitable[None]]


def told(job: Job, tale: Tale) -> None:
    async def run() -> None:
        async with following(job) as story:
            await tale(story)

    asyncio.run(run())


async def turns() -> None:
    """Give everybody who waits the time to act."""
    for _ in range(5):
        await asyncio.sleep(0)
