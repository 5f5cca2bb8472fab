"""The whole watcher: what the cluster says becomes states, lines and intervals."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from pytest_django import Settings

from portal.clusters.specs import (
    AttemptFacts,
    Condition,
    ContainerFacts,
    ContainerRef,
    JobFacts,
    PodFacts,
    WorkloadFacts,
)
from portal.core.models import Lease
from portal.jobs import services as jobs
from portal.jobs.models import Attempt, Job, State
from portal.logs import selectors as logs
from portal.logs.models import Stream
from portal.usage.models import Interval
from portal.watch import runner
from portal.watch.desk import Backoff
from tests import factories
from tests.support.troubles import trouble_of
from tests.watch.cluster import NOON_NS, FakeCluster
from tests.watch.conftest import Looks, true, until

pytestmark = pytest.mark.asyncio

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
REF = ContainerRef(cluster="default", namespace="bt-vision", pod="p-0", pod_uid="uid-0", container="main")
RUNNING = ContainerFacts(name="main", state="running", started_at=NOON + timedelta(seconds=2))
ENDED = ContainerFacts(
    name="main",
    state="terminated",
    reason="Completed",
    exit_code=0,
    started_at=NOON + timedelta(seconds=2),
    finished_at=NOON + timedelta(seconds=62),
)
ADMITTED = tuple(Condition(name, True, at=NOON) for name in ("QuotaReserved", "Admitted"))


@pytest.fixture(autouse=True)
def quick(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.BEAMTIME_LEASE = 2
    monkeypatch.setattr(Backoff, "pause", lambda _self: 0.02)
    monkeypatch.setattr(runner, "EXPECT", 0.1)
    monkeypatch.setattr(runner, "RECONCILE", 0.2)
    monkeypatch.setattr(runner, "backend_of", lambda _row: cluster)


@asynccontextmanager
async def watching() -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    task = asyncio.create_task(runner.run("default", stop))
    try:
        yield stop
    finally:
        stop.set()
        async with asyncio.timeout(15):
            await task


async def running(job: Job, **fields: object) -> AttemptFacts:
    attempt = await Attempt.objects.aget(job=job)
    pod = PodFacts(
        uid="uid-0",
        name="p-0",
        phase="Running",
        node="n-1",
        scheduled_at=NOON,
        containers=(RUNNING,),
        requests={"nvidia.com/gpu": Decimal(1)},
    )
    values = {
        "cluster": "default",
        "namespace": attempt.namespace,
        "name": attempt.object_name,
        "job_id": str(job.pk),
        "attempt": 1,
        "job": JobFacts(
            uid="j-1", name=attempt.object_name, created_at=NOON, suspended=False, started_at=NOON, active=1
        ),
        "workload": WorkloadFacts(
            name="w", cluster_queue="gpu", conditions=ADMITTED, flavors={"nvidia.com/gpu": "h100"}
        ),
        "pods": (pod,),
    }
    return AttemptFacts(**{**values, **fields})  # type: ignore[arg-type]


def done(facts: AttemptFacts) -> AttemptFacts:
    assert facts.job is not None
    over = NOON + timedelta(seconds=63)
    return replace(
        facts,
        job=replace(
            facts.job, active=0, succeeded=1, completed_at=over, conditions=(Condition("Complete", True, at=over),)
        ),
        pods=tuple(replace(pod, phase="Succeeded", containers=(ENDED,)) for pod in facts.pods),
    )


def state_is(job: Job, state: State) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        return await Job.objects.filter(pk=job.pk, state=state).aexists()

    return holds


async def stored() -> bool:
    return await Attempt.objects.filter(stored_at__isnull=False).aexists()


async def test_a_job_from_its_start_to_its_end(cluster: FakeCluster, job: Job) -> None:
    await Job.objects.aupdate(state=State.STARTING)
    await Attempt.objects.aupdate(state=State.STARTING, object_uid="j-1")
    facts = await running(job)
    log = cluster.log(REF)
    async with watching():
        cluster.facts.put_nowait(facts)
        log.write(b"hello\n")
        await until(state_is(job, State.RUNNING))
        await until(lambda: _has_line(2))
        log.write(b"bye\n", ns=NOON_NS + 1)
        log.close()
        cluster.facts.put_nowait(done(facts))
        await until(state_is(job, State.SUCCEEDED))
        await until(stored)
    interval = await Interval.objects.aget()
    assert (interval.started_at, interval.ended_at) == (NOON, NOON + timedelta(seconds=62))
    stream = await Stream.objects.aget()
    assert stream.completed_at is not None
    assert await sync_to_async(lambda: b"".join(logs.content(stream)))() == b"hello\nbye\n"
    assert cluster.observers == 0
    assert cluster.expected is not None


async def test_a_state_is_in_the_database_at_once(cluster: FakeCluster, job: Job) -> None:
    await Job.objects.aupdate(state=State.STARTING)
    await Attempt.objects.aupdate(state=State.STARTING, object_uid="j-1")
    facts = await running(job)
    async with watching():
        await until(lambda: true(cluster.observers == 1))
        began = time.perf_counter()
        cluster.facts.put_nowait(facts)
        await until(state_is(job, State.RUNNING))
        assert time.perf_counter() - began < 1.0


async def test_nothing_is_stored_as_finished_before_its_log_is(cluster: FakeCluster, job: Job) -> None:
    await Attempt.objects.aupdate(object_uid="j-1")
    log = cluster.log(REF)
    log.write(b"slow\n")
    cluster.cuts = [3] * 40
    facts = await running(job)
    async with watching():
        cluster.facts.put_nowait(done(facts))
        await until(state_is(job, State.SUCCEEDED))
        assert not await stored() or await Stream.objects.filter(completed_at__isnull=False).aexists()
        log.close()
        await until(stored)
    assert (await Stream.objects.aget()).next_line == 2


async def test_a_fact_that_cannot_be_taken_is_tried_again_and_stops_nothing(
    cluster: FakeCluster, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Attempt.objects.aupdate(object_uid="j-1")
    real, failures = (
        jobs.observe,
        iter([ValueError("a bug"), OperationalError("database is down"), ValueError("again")]),
    )

    def fails_at_first(facts: AttemptFacts, *, fence: object) -> None:
        trouble = next(failures, None)
        if trouble is not None:
            raise trouble
        real(facts, fence=fence)  # type: ignore[arg-type]

    monkeypatch.setattr(jobs, "observe", fails_at_first)
    facts = await running(job)
    async with watching():
        cluster.facts.put_nowait(RuntimeError("the watch broke"))
        cluster.facts.put_nowait(await running(job, job_id="00000000-0000-4000-8000-000000000000", pods=()))
        cluster.facts.put_nowait(done(facts))
        cluster.log(REF).close()
        await until(state_is(job, State.SUCCEEDED))
        await until(stored)


async def test_a_second_watcher_takes_over_and_doubles_nothing(cluster: FakeCluster, job: Job) -> None:
    await Attempt.objects.aupdate(object_uid="j-1")
    facts = await running(job)
    log = cluster.log(REF)
    log.write(*[b"line %d\n" % n for n in range(100)])
    async with AsyncExitStack() as stack:
        first_stop = await stack.enter_async_context(watching())
        await until(lambda: true(cluster.observers == 1))
        await stack.enter_async_context(watching())
        cluster.facts.put_nowait(facts)
        await until(lambda: _has_line(101))
        first = await Lease.objects.aget()
        first_stop.set()
        await until(lambda: _epoch(first.epoch + 1))
        log.write(*[b"line %d\n" % n for n in range(100, 150)], ns=NOON_NS + 5)
        cluster.facts.put_nowait(facts)
        await until(lambda: _has_line(151))
        log.close()
        cluster.facts.put_nowait(done(facts))
        await until(stored)
    stream = await Stream.objects.aget()
    text = await sync_to_async(lambda: b"".join(logs.content(stream)))()
    assert text == b"".join(b"line %d\n" % n for n in range(150))
    assert await Interval.objects.acount() == 1


async def test_a_watcher_that_lost_its_lease_writes_no_more(cluster: FakeCluster, job: Job, looks: Looks) -> None:
    await Attempt.objects.aupdate(object_uid="j-1")
    log = cluster.log(REF)
    log.write(b"mine\n")
    async with watching():
        cluster.facts.put_nowait(await running(job))
        await until(lambda: _has_line(2))
        # Somebody else leads now, for long.
        await Lease.objects.aupdate(holder="other", epoch=99, expires_at=datetime(2999, 1, 1, tzinfo=UTC))
        log.write(b"not mine any more\n", ns=NOON_NS + 5)
        await until(lambda: true(cluster.observers == 0 and cluster.reading == 0))
        cluster.facts.put_nowait(done(await running(job)))
        # It stands by, and hears nothing of the cluster.
        before = looks.refused()
        await until(lambda: true(looks.refused() >= before + 2))
        assert (cluster.observers, cluster.facts.qsize()) == (0, 1)
    assert (await Stream.objects.aget()).next_line == 2
    assert (await Lease.objects.aget()).holder == "other"


async def test_case_31_a_job_deleted_behind_the_portal_s_back_closes_what_it_held(
    cluster: FakeCluster, job: Job
) -> None:
    await Attempt.objects.aupdate(object_uid="j-1")
    facts = await running(job)
    log = cluster.log(REF)
    log.write(b"still here\n")
    gone_at = NOON + timedelta(seconds=40)
    async with watching():
        cluster.facts.put_nowait(facts)
        await until(lambda: _has_line(2))
        log.gone = True
        log.grown.set()
        pods = tuple(replace(pod, gone=True, gone_at=gone_at, deletion_requested_at=NOON) for pod in facts.pods)
        cluster.facts.put_nowait(replace(facts, job_gone=True, gone_at=gone_at, pods=pods))
        await until(stored)
    assert (await Interval.objects.aget()).ended_at == gone_at
    stream = await Stream.objects.aget()
    assert (stream.completed_at is not None, await trouble_of(stream) != "") == (True, True)


async def test_it_waits_for_a_cluster_that_is_not_known_yet(
    cluster: FakeCluster, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def pause(_self: Backoff) -> float:
        pauses.append(0.01)
        return pauses[-1]

    monkeypatch.setattr(Backoff, "pause", pause)
    async with watching():
        await until(lambda: true(len(pauses) >= 3))
        assert cluster.observers == 0
        await sync_to_async(factories.make_site)()
        await until(lambda: true(cluster.observers == 1))


async def _has_line(next_line: int) -> bool:
    return await Stream.objects.filter(next_line=next_line).aexists()


async def _epoch(number: int) -> bool:
    return await Lease.objects.filter(epoch=number, expires_at__gt=datetime.now(UTC)).aexists()
