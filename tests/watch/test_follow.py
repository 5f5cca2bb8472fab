"""Following a container's log: every line once, whatever breaks on the way."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import OperationalError

from portal.clusters.specs import ContainerRef
from portal.core import leases
from portal.jobs.models import Job, State
from portal.logs import selectors, services
from portal.logs.models import Stream
from portal.watch import follower as module
from portal.watch.desk import Backoff, Desk
from portal.watch.follower import Follower
from portal.watch.slots import Slots
from tests.support.troubles import trouble_of
from tests.watch.cluster import NOON_NS, FakeCluster
from tests.watch.conftest import FILE_BYTES, until

pytestmark = pytest.mark.asyncio

REF = ContainerRef(cluster="default", namespace="bt-vision", pod="p-0", pod_uid="uid-0", container="main")


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    found = Desk("test", 2)
    yield found
    await found.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "pause", lambda _self: 0.01)
    monkeypatch.setattr(module, "DRAIN", 0.3)


def follow(
    cluster: FakeCluster,
    job: Job,
    desk: Desk,
    *,
    ref: ContainerRef = REF,
    slots: Slots | None = None,
    fence: leases.Fence | None = None,
) -> Follower:
    return Follower(
        job_id=str(job.pk),
        attempt=1,
        pod_index=0,
        ref=ref,
        backend=cluster,
        desk=desk,
        slots=slots or Slots(10),
        fence=fence,
        stop=asyncio.Event(),
        file_bytes=FILE_BYTES,
    )


async def finished(follower: Follower, seconds: float = 20) -> bool:
    async with asyncio.timeout(seconds):
        return await follower.run()


@sync_to_async
def stored(ref: ContainerRef = REF) -> tuple[bytes, Stream]:
    stream = Stream.objects.get(pod_uid=ref.pod_uid)
    return b"".join(selectors.content(stream)), stream


def lines(count: int, per_second: int = 1000) -> list[tuple[int, bytes]]:
    """Many lines in each nanosecond that has any."""
    return [(NOON_NS + n // per_second * 700_000_000, b"line %d\n" % n) for n in range(count)]


async def test_a_log_is_stored_as_it_was_written(cluster: FakeCluster, job: Job, desk: Desk) -> None:
    log = cluster.log(REF)
    log.write(b"one\n", b"\n", b"\x00\xff three\r\n")
    log.write(b"part ", b"of a line", ns=NOON_NS + 5)
    log.close()
    follower = follow(cluster, job, desk)
    follower.ended.set()
    assert await finished(follower)
    text, stream = await stored()
    assert text == b"one\n\n\x00\xff three\r\npart of a line"
    assert (stream.next_line, await trouble_of(stream), stream.completed_at is not None) == (5, "", True)


@pytest.mark.parametrize("portion", [3, 50, 4096, 1_000_000])
async def test_50_broken_connections_lose_and_double_nothing(
    cluster: FakeCluster, job: Job, desk: Desk, portion: int
) -> None:
    log = cluster.log(REF)
    written = lines(300, per_second=75)
    log.fragments = list(written)
    log.close()
    cluster.portion = portion
    cluster.cuts = [1 + (n * 397) % 10_000 for n in range(50)]
    follower = follow(cluster, job, desk)
    follower.ended.set()
    assert await finished(follower, 60)
    text, stream = await stored()
    assert text == b"".join(text for _, text in written)
    assert await trouble_of(stream) == ""


async def test_case_45_a_clean_end_of_the_stream_is_not_the_end_of_the_log(
    cluster: FakeCluster, job: Job, desk: Desk
) -> None:
    log = cluster.log(REF)
    log.write(b"before\n")
    log.close()
    follower = follow(cluster, job, desk)
    running = asyncio.create_task(finished(follower))
    await until(lambda: _opened(log, 3))
    log.closed = False
    log.write(b"after\n", ns=NOON_NS + 11 * 60_000_000_000)
    await until(lambda: _holds(b"before\nafter\n"))
    log.close()
    follower.ended.set()
    assert await running
    assert (await stored())[0] == b"before\nafter\n"


async def test_lines_appear_while_the_container_runs_and_the_unfinished_one_is_seen(
    cluster: FakeCluster, job: Job, desk: Desk
) -> None:
    log = cluster.log(REF)
    follower = follow(cluster, job, desk)
    running = asyncio.create_task(finished(follower))
    log.write(b"first\n", b"10 %\r")
    await until(lambda: _open("10 %"))
    log.write(b"20 %\r", b"30 %\r")
    await until(lambda: _open("30 %"))
    log.write(b"done\n")
    await until(lambda: _holds(b"first\n10 %\r20 %\r30 %\rdone\n"))
    assert (await stored())[1].open_text == ""
    log.close()
    follower.ended.set()
    assert await running


async def test_case_09_a_bar_of_200_steps_is_one_line_in_store_and_changes_in_place(
    cluster: FakeCluster, job: Job, desk: Desk
) -> None:
    log = cluster.log(REF)
    bar = [b" %3d/200 |%s|\r" % (step, b"#" * (step // 10)) for step in range(1, 201)]
    log.write(*bar)
    follower = follow(cluster, job, desk)
    running = asyncio.create_task(finished(follower))
    await until(lambda: _open(" 200/200 |####################|"))
    log.close()
    follower.ended.set()
    assert await running
    text, stream = await stored()
    assert (text, stream.next_line) == (b"".join(bar), 2)


async def test_a_second_leader_reads_on_where_the_first_one_stopped(cluster: FakeCluster, job: Job, desk: Desk) -> None:
    log = cluster.log(REF)
    log.fragments = lines(50)
    first = follow(cluster, job, desk)
    running = asyncio.create_task(finished(first))
    await until(lambda: _holds(b"".join(text for _, text in lines(50))))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    log.fragments = lines(120)
    log.close()
    second = follow(cluster, job, desk)
    second.ended.set()
    assert await finished(second)
    assert (await stored())[0] == b"".join(text for _, text in lines(120))


async def test_two_followers_of_one_log_store_it_once(cluster: FakeCluster, job: Job, desk: Desk) -> None:
    log = cluster.log(REF)
    log.fragments = lines(3000)
    log.close()
    both = [follow(cluster, job, desk), follow(cluster, job, desk)]
    for follower in both:
        follower.ended.set()
    assert await asyncio.gather(*(finished(follower) for follower in both)) == [True, True]
    assert (await stored())[0] == b"".join(text for _, text in lines(3000))


async def test_a_leader_of_the_past_stores_nothing(cluster: FakeCluster, job: Job, desk: Desk) -> None:
    old = await sync_to_async(leases.take)(name="watch:default", holder="old", ttl=timedelta(seconds=30))
    await sync_to_async(leases.release)(name="watch:default", holder="old")
    await sync_to_async(leases.take)(name="watch:default", holder="new", ttl=timedelta(seconds=30))
    cluster.log(REF).write(b"late\n")
    with pytest.raises(leases.FencedOff):
        await finished(follow(cluster, job, desk, fence=old))
    assert not await Stream.objects.aexists()


async def test_a_log_that_can_no_longer_be_read_is_complete_and_says_so(
    cluster: FakeCluster, job: Job, desk: Desk
) -> None:
    log = cluster.log(REF)
    log.write(b"seen\n")
    follower = follow(cluster, job, desk)
    running = asyncio.create_task(finished(follower))
    await until(lambda: _holds(b"seen\n"))
    log.gone = True
    log.grown.set()
    assert await running
    text, stream = await stored()
    assert text == b"seen\n"
    assert (await trouble_of(stream)).startswith("The last lines may be missing: the pod was deleted")
    # Log trouble says nothing about the job.
    assert await Job.objects.values_list("state", flat=True).aget() == State.RUNNING


async def test_a_rotated_log_with_a_hole_says_where_lines_may_be_missing(
    cluster: FakeCluster, job: Job, desk: Desk
) -> None:
    log = cluster.log(REF)
    everything = lines(100, per_second=1)
    log.fragments = everything[:20]
    first = follow(cluster, job, desk)
    running = asyncio.create_task(finished(first))
    await until(lambda: _holds(b"".join(text for _, text in everything[:20])))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    log.fragments = everything[60:]
    log.close()
    second = follow(cluster, job, desk)
    second.ended.set()
    assert await finished(second)
    text, stream = await stored()
    assert text == b"".join(text for _, text in everything[:20] + everything[60:])
    assert (
        await trouble_of(stream) == "Lines may be missing before line 21: the log was rotated while nobody was reading."
    )


async def test_lines_wait_for_a_database_that_is_down(
    cluster: FakeCluster, job: Job, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = services.append, iter(range(5))

    def down_for_a_while(**given: object) -> object:
        if next(failures, None) is not None:
            raise OperationalError("the database system is starting up")
        return real(**given)  # type: ignore[arg-type]

    monkeypatch.setattr(services, "append", down_for_a_while)
    log = cluster.log(REF)
    log.fragments = lines(100)
    log.close()
    follower = follow(cluster, job, desk)
    follower.ended.set()
    assert await finished(follower)
    assert (await stored())[0] == b"".join(text for _, text in lines(100))


async def test_more_logs_than_places_are_all_read_in_turns(
    cluster: FakeCluster, job: Job, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TURN", 0.1)
    monkeypatch.setattr(module, "LOOK", 0.05)
    slots = Slots(2)
    refs = [
        ContainerRef(cluster="default", namespace="bt-vision", pod=f"p-{n}", pod_uid=f"uid-{n}", container="main")
        for n in range(6)
    ]
    followers = [follow(cluster, job, desk, ref=ref, slots=slots) for ref in refs]
    for ref in refs:
        cluster.log(ref).write(f"hello from {ref.pod}\n".encode())
    running = asyncio.gather(*(finished(follower) for follower in followers))
    # None of the containers ends, and yet each log is read.
    await until(lambda: _count(6))
    assert cluster.most_reading == 2
    for ref, follower in zip(refs, followers, strict=True):
        cluster.log(ref).close()
        follower.ended.set()
    assert await running == [True] * 6


async def test_an_order_to_stop_stores_what_was_read(cluster: FakeCluster, job: Job, desk: Desk) -> None:
    log = cluster.log(REF)
    follower = follow(cluster, job, desk)
    running = asyncio.create_task(finished(follower))
    await until(lambda: _opened(log, 1))
    log.write(b"just now\n")
    await asyncio.sleep(0)
    await until(lambda: _taken(follower, log))
    follower._stop.set()
    assert not await running
    assert (await stored())[0] == b"just now\n"


async def test_a_pod_of_a_job_that_does_not_exist_is_left_alone(cluster: FakeCluster, job: Job, desk: Desk) -> None:
    cluster.log(REF).write(b"whose is this?\n")
    follower = Follower(
        job_id="00000000-0000-4000-8000-000000000000",
        attempt=1,
        pod_index=0,
        ref=REF,
        backend=cluster,
        desk=desk,
        slots=Slots(1),
        fence=None,
        stop=asyncio.Event(),
        file_bytes=FILE_BYTES,
    )
    assert await finished(follower)
    assert not await Stream.objects.aexists()


async def _holds(text: bytes) -> bool:
    return await Stream.objects.aexists() and (await stored())[0] == text


async def _open(text: str) -> bool:
    return await Stream.objects.filter(open_text=text).aexists()


async def _opened(log: object, times: int) -> bool:
    return log.opened >= times  # type: ignore[attr-defined, no-any-return]


async def _taken(_follower: Follower, log: object) -> bool:
    return not log.grown.is_set()  # type: ignore[attr-defined]


async def _count(number: int) -> bool:
    return await Stream.objects.filter(next_line=2).acount() == number
