"""What earlier watchers left open is brought to its end, although the cluster shows no trace of it any more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from portal.clusters.specs import AttemptFacts, Condition, ContainerFacts, ContainerRef, JobFacts, PodFacts
from portal.jobs import services as jobs
from portal.jobs.models import Attempt, Job, Pod, State
from portal.logs import services as logs
from portal.logs.models import Stream
from portal.logs.specs import Record
from portal.usage import services as usage
from portal.usage.models import Interval
from portal.watch import runner
from portal.watch.desk import Backoff
from tests.support.troubles import trouble_of
from tests.watch.cluster import NOON_NS, FakeCluster
from tests.watch.conftest import until

pytestmark = pytest.mark.asyncio

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
REF = ContainerRef(cluster="default", namespace="bt-vision", pod="p-0", pod_uid="uid-0", container="main")
POD = PodFacts(
    uid="uid-0",
    name="p-0",
    phase="Running",
    node="n-1",
    scheduled_at=NOON,
    containers=(ContainerFacts(name="main", state="running", started_at=NOON + timedelta(seconds=2)),),
    requests={"nvidia.com/gpu": Decimal(1)},
)


@pytest.fixture(autouse=True)
def quick(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.BEAMTIME_LEASE = 2
    monkeypatch.setattr(Backoff, "pause", lambda _self: 0.02)
    monkeypatch.setattr(runner, "EXPECT", 0.1)
    monkeypatch.setattr(runner, "backend_of", lambda _row: cluster)


@asynccontextmanager
async def watching() -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(runner.run("default", stop))
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(15):
            await task


@pytest.fixture
def facts(job: Job) -> AttemptFacts:
    """What the last watcher saw and stored before it died: a running pod, and a line of its log."""
    attempt = Attempt.objects.get(job=job)
    Attempt.objects.update(object_uid="j-1")
    seen = AttemptFacts(
        cluster="default",
        namespace=attempt.namespace,
        name=attempt.object_name,
        job_id=str(job.pk),
        attempt=1,
        job=JobFacts(uid="j-1", name=attempt.object_name, created_at=NOON, suspended=False, started_at=NOON),
        pods=(POD,),
    )
    jobs.observe(seen)
    usage.record(seen)
    stream = logs.open_stream(job_id=job.pk, attempt_number=1, ref=REF)
    logs.append(stream_id=stream.pk, first_line=1, records=[Record(NOON_NS, b"still here\n")])
    Interval.objects.update(seen_at=NOON + timedelta(seconds=30))
    return seen


async def stored() -> bool:
    return await Attempt.objects.filter(stored_at__isnull=False).aexists()


async def assert_closed_as_an_estimate() -> None:
    interval = await Interval.objects.aget()
    assert (interval.ended_at, interval.estimated) == (NOON + timedelta(seconds=30), True)
    stream = await Stream.objects.aget()
    assert stream.completed_at is not None
    assert await trouble_of(stream)
    assert (await Pod.objects.aget()).gone


async def test_a_job_cancelled_while_nobody_watched_is_asked_for_and_lets_go(
    cluster: FakeCluster, job: Job, facts: AttemptFacts
) -> None:
    await Job.objects.aupdate(state=State.CANCELLED, ended_at=NOON + timedelta(seconds=60))
    await Attempt.objects.aupdate(
        state=State.CANCELLED, ended_at=NOON + timedelta(seconds=60), withdrawn_at=NOON + timedelta(seconds=60)
    )
    cluster.log(REF).gone = True
    place = f"{facts.namespace}/{facts.name}"
    async with watching():
        await until(lambda: _true(cluster.expected == {place: (str(job.pk), 1)}))
        cluster.facts.put_nowait(replace(facts, job=None, job_gone=True, gone_at=NOON + timedelta(hours=1), pods=()))
        await until(stored)
        await until(lambda: _true(cluster.expected == {}))
    await assert_closed_as_an_estimate()
    assert (await Job.objects.aget()).state == State.CANCELLED


async def test_a_pod_that_vanished_unread_is_said_to_have_vanished(
    cluster: FakeCluster, job: Job, facts: AttemptFacts
) -> None:
    assert facts.job is not None
    failed = (Condition("Failed", True, reason="BackoffLimitExceeded", at=NOON + timedelta(seconds=50)),)
    cluster.log(REF).gone = True
    async with watching():
        cluster.facts.put_nowait(replace(facts, job=replace(facts.job, failed=1, conditions=failed), pods=()))
        await until(stored)
    await assert_closed_as_an_estimate()
    found = await Job.objects.aget()
    assert (found.state, found.reason_code) == (State.FAILED, "vanished")


async def test_a_pod_that_is_still_there_goes_on(cluster: FakeCluster, job: Job, facts: AttemptFacts) -> None:
    async with watching():
        cluster.facts.put_nowait(facts)
        await until(lambda: _true(cluster.log(REF).opened > 0))
        await until(lambda: _true(len(cluster.expected or {}) == 1))
    assert (await Interval.objects.aget()).ended_at is None
    assert (await Stream.objects.aget()).completed_at is None
    assert not (await Pod.objects.aget()).gone


async def test_a_log_left_unfinished_is_finished_although_all_else_is_stored(
    cluster: FakeCluster, job: Job, facts: AttemptFacts
) -> None:
    await sync_to_async(usage.record)(replace(facts, job_gone=True, pods=()))
    await Attempt.objects.aupdate(state=State.LOST, ended_at=NOON, withdrawn_at=NOON)
    cluster.log(REF).gone = True
    async with watching():
        await until(lambda: _true(len(cluster.expected or {}) == 1))
        cluster.facts.put_nowait(replace(facts, job=None, job_gone=True, gone_at=NOON, pods=()))
        await until(stored)
    assert await trouble_of(await Stream.objects.aget())


async def _true(holds: bool) -> bool:
    return holds
