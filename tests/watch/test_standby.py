"""A log that a collector delivers: the follower stands by, and sees to it that the log comes to its end."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async

from portal.jobs.models import Job
from portal.logs import services
from portal.logs.models import Source, Stream
from portal.logs.policy.collected import Seen
from portal.logs.services import ingest
from portal.logs.services.waiting import keep
from portal.watch import standby
from portal.watch.desk import Desk
from portal.watch.follower import Follower
from portal.watch.slots import Slots
from tests.support.troubles import trouble_of
from tests.watch.cluster import NOON_NS, FakeCluster
from tests.watch.conftest import FILE_BYTES, true, until
from tests.watch.kubelet import SECOND
from tests.watch.test_follow import REF, finished, stored

pytestmark = pytest.mark.asyncio

# The process of the collector.
SENDER = "started-at-noon"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("LOOK", 0.02), ("QUIET", 0.1), ("SILENT", 1.5), ("GONE", 0.5)):
        monkeypatch.setattr(standby, name, seconds)


@pytest.fixture
def looks_at_collector(monkeypatch: pytest.MonkeyPatch) -> list[ingest.Progress]:
    """What was found each time that somebody looked how far the collector has come."""
    found: list[ingest.Progress] = []
    look = ingest.progress

    def noted(*, stream_id: UUID) -> ingest.Progress:
        found.append(look(stream_id=stream_id))
        return found[-1]

    monkeypatch.setattr(ingest, "progress", noted)
    return found


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    found = Desk("test", 2)
    yield found
    await found.close()


def follower(cluster: FakeCluster, job: Job, desk: Desk) -> Follower:
    return Follower(
        job_id=str(job.pk),
        attempt=1,
        pod_index=0,
        ref=REF,
        backend=cluster,
        desk=desk,
        slots=Slots(10),
        fence=None,
        stop=asyncio.Event(),
        file_bytes=FILE_BYTES,
    )


@sync_to_async
def deliver(job: Job, texts: list[bytes], *, offset: int = 0) -> None:
    """As the collectors' door does it, and numbered at once."""
    stream = services.open_stream(job_id=job.pk, attempt_number=1, ref=REF)
    records = []
    for text in texts:
        records.append(Seen(NOON_NS + offset, offset, offset + 100, "stdout", True, text))
        offset += 100
    keep(stream.pk, records, sender=SENDER)
    ingest.number(stream_id=stream.pk, hurry=True)


def write(cluster: FakeCluster, texts: list[bytes]) -> None:
    for number, text in enumerate(texts):
        cluster.log(REF).write(text + b"\n", ns=NOON_NS + number * 100)


async def test_nothing_is_read_while_a_collector_delivers_and_the_end_is_compared(
    cluster: FakeCluster, job: Job, desk: Desk, looks_at_collector: list[ingest.Progress]
) -> None:
    texts = [b"one", b"two", b"three"]
    await deliver(job, texts[:2])
    standing = follower(cluster, job, desk)
    running = asyncio.create_task(finished(standing))
    await until(lambda: true(len(looks_at_collector) >= 4))
    assert cluster.log(REF).opened == 0
    write(cluster, texts)
    cluster.log(REF).close()
    standing.ended.set()
    # The cluster has a line that was not delivered yet.
    await until(lambda: true(cluster.log(REF).opened >= 2))
    assert not running.done()
    await deliver(job, texts[2:], offset=200)
    assert await running
    text, stream = await stored()
    assert (text, stream.completed_at is not None) == (b"one\ntwo\nthree\n", True)


async def test_of_a_collector_that_has_gone_the_follower_adds_what_is_missing(
    cluster: FakeCluster, job: Job, desk: Desk
) -> None:
    texts = [b"one", b"two", b"three"]
    await deliver(job, texts[:1])
    write(cluster, texts)
    cluster.log(REF).close()
    standing = follower(cluster, job, desk)
    standing.ended.set()
    assert await finished(standing)
    text, stream = await stored()
    assert (text, stream.source) == (b"one\ntwo\nthree\n", Source.FOLLOWER)


async def test_a_file_that_was_full_right_before_the_end_is_waited_for(
    cluster: FakeCluster, job: Job, desk: Desk
) -> None:
    texts = [b"one", b"two", b"three"]
    await deliver(job, texts[:2])
    # The present file is empty: what the endpoint shows says nothing of the file before it.
    cluster.log(REF).close()
    standing = follower(cluster, job, desk)
    standing.ended.set()
    running = asyncio.create_task(finished(standing))
    await until(lambda: true(cluster.log(REF).opened >= 3))
    assert not running.done()
    await deliver(job, texts[2:], offset=200)
    assert await running
    text, _stream = await stored()
    assert text == b"one\ntwo\nthree\n"


async def test_of_a_pod_that_has_gone_what_was_delivered_is_the_log(cluster: FakeCluster, job: Job, desk: Desk) -> None:
    """Whether that is all nobody can know, as long as the collector says nothing else."""
    await deliver(job, [b"one", b"two"])
    standing = gone(cluster, job, desk)
    assert await finished(standing)
    text, stream = await stored()
    assert (text, stream.completed_at is not None) == (b"one\ntwo\n", True)
    assert "The last lines may be missing" in await trouble_of(stream)


async def test_a_collector_that_has_read_on_behind_the_end_of_a_pod_that_has_gone_has_delivered_all_of_it(
    cluster: FakeCluster, job: Job, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby, "GONE", 60.0)
    await deliver(job, [b"one", b"two"])
    standing = gone(cluster, job, desk)
    running = asyncio.create_task(finished(standing))
    # Something of another pod, which the same process has read a while after that.
    ref = replace(REF, pod=f"{REF.pod}-other", pod_uid="uid-other")
    seen = {ref: [Seen(NOON_NS, 0, 100, "stdout", True, b"elsewhere")]}
    accept = partial(ingest.accept, cluster="default", delivery=seen, sender=SENDER)

    async def whole() -> bool:
        await sync_to_async(accept)(read_ns={ref: time.time_ns() + 10 * SECOND})
        return running.done()

    await until(whole)
    assert await running
    text, stream = await stored()
    assert (text, await trouble_of(stream)) == (b"one\ntwo\n", "")


def gone(cluster: FakeCluster, job: Job, desk: Desk) -> Follower:
    """The follower of a log that nobody can read in the cluster any more."""
    cluster.log(REF).gone = True
    standing = follower(cluster, job, desk)
    standing.ended.set()
    standing.gone = True
    return standing


async def test_a_stream_that_a_collector_takes_over_is_left_to_it(cluster: FakeCluster, job: Job, desk: Desk) -> None:
    texts = [b"one", b"two", b"three"]
    write(cluster, texts[:2])
    standing = follower(cluster, job, desk)
    running = asyncio.create_task(finished(standing))

    async def both() -> bool:
        return await Stream.objects.filter(next_line=3).aexists()

    await until(both)
    await deliver(job, texts)
    write_on = cluster.log(REF)
    write_on.write(b"three\n", ns=NOON_NS + 200)
    write_on.close()
    standing.ended.set()
    assert await running
    text, _stream = await stored()
    assert text == b"one\ntwo\nthree\n"


async def test_a_line_that_was_torn_at_a_rotation_is_whole_and_no_gap(
    cluster: FakeCluster, job: Job, desk: Desk
) -> None:
    behind = [b"four", b"five"]
    await deliver(job, [b"one", b"two", b"three and its rest", *behind])
    # The present file begins with the rest of the third line.
    log = cluster.log(REF)
    for number, text in enumerate((b" and its rest", *behind)):
        log.write(text + b"\n", ns=NOON_NS + 250 + number * 100 - 50 * bool(number))
    log.close()
    standing = follower(cluster, job, desk)
    standing.ended.set()
    assert await finished(standing)
    text, stream = await stored()
    assert text == b"".join(each + b"\n" for each in (b"one", b"two", b"three and its rest", *behind))
    assert not await stream.gaps.aexists()
