"""The watcher on the backend that runs real processes: what a program says and uses is what is stored."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from pytest_django import Settings

from portal.clusters.gateway import backend_of, forget_backends
from portal.clusters.local.backend import LocalBackend
from portal.clusters.models import Cluster
from portal.clusters.specs import WorkSpec
from portal.jobs import services as jobs
from portal.jobs.models import Attempt, Job, State
from portal.logs import selectors as logs
from portal.logs.models import Stream
from portal.quotas import services as quotas
from portal.teams.models import Membership, Role, Team, User
from portal.usage.models import Interval
from portal.watch import runner
from tests import factories
from tests.support.troubles import trouble_of
from tests.watch.conftest import until

pytestmark = pytest.mark.asyncio

# Says a character in two writes, a progress bar, bytes that are no text, and a last line without an end.
PROGRAM = rb"""
import os, time
os.write(1, b"starting\n\xc3")
time.sleep(0.7)
os.write(1, b"\xbc in two writes\n\x00\xff\n")
for step in range(1, 201):
    os.write(1, b"%3d/200\r" % step)
    time.sleep(0.01)
os.write(1, b"\n" + b"".join(b"%d\n" % n for n in range(20000)) + b"the end")
"""
SAID = (
    b"starting\n\xc3\xbc in two writes\n\x00\xff\n"
    + b"".join(b"%3d/200\r" % step for step in range(1, 201))
    + b"\n"
    + b"".join(b"%d\n" % n for n in range(20_000))
    + b"the end"
)


@pytest_asyncio.fixture
async def backend(tmp_path: Path, settings: Settings, transactional_db: None) -> AsyncIterator[LocalBackend]:
    """This machine as a cluster with 4 pretended GPUs, and the watcher at work."""
    settings.BEAMTIME_DATA_DIR = tmp_path
    forget_backends()
    site = await sync_to_async(factories.make_site)()
    await sync_to_async(quotas.publish)(site.cluster)
    found = backend_of(site.cluster)
    assert isinstance(found, LocalBackend)
    stop = asyncio.Event()
    watching = asyncio.create_task(runner.run(site.cluster.name, stop))
    try:
        yield found
    finally:
        await asyncio.to_thread(found.shutdown, 0.2)
        stop.set()
        async with asyncio.timeout(20):
            await watching
        forget_backends()


@sync_to_async
def start(work: WorkSpec) -> Job:
    cluster = Cluster.objects.get()
    team, _ = Team.objects.get_or_create(slug="vision", defaults={"name": "Vision"})
    queue = cluster.cluster_queues.get(name="gpu")
    member = factories.make_user("member")
    Membership.objects.create(team=team, user=member, role=Role.MEMBER)
    job = factories.make_job(team, member, queue, work=work, gpu_model="NVIDIA H100")
    jobs.dispatch(job.attempts.get().pk)
    return job


def is_in(job: Job, *states: State) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        return await Job.objects.filter(pk=job.pk, state__in=states).aexists()

    return holds


def one_more(job: Job) -> Job:
    """The same job again, by the same person."""
    assert job.submitted_by is not None
    other = factories.make_job(
        job.team, job.submitted_by, job.queue.cluster_queue, work=WorkSpec.from_json(job.work), gpu_model=job.gpu_model
    )
    jobs.dispatch(other.attempts.get().pk)
    return other


async def stored() -> bool:
    return await Attempt.objects.filter(stored_at__isnull=False).aexists()


async def test_a_program_is_followed_from_its_first_byte_to_its_last(backend: LocalBackend, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_bytes(PROGRAM)
    job = await start(WorkSpec(image="here", command=(sys.executable, str(program)), gpus=2, flavor="h100"))
    seen: set[str] = set()

    async def bar_moves() -> bool:
        text = await Stream.objects.values_list("open_text", flat=True).afirst()
        if text and text.endswith("/200"):
            seen.add(text)
        return len(seen) >= 2

    await until(bar_moves, 30)
    await until(stored, 30)
    job = await Job.objects.aget(pk=job.pk)
    assert job.state == State.SUCCEEDED
    stream = await Stream.objects.aget()
    assert await sync_to_async(lambda: b"".join(logs.content(stream)))() == SAID
    assert (stream.next_line, await trouble_of(stream), stream.open_text) == (20_006, "", "")
    page = await sync_to_async(logs.lines)(stream, 2, 1)
    assert page.lines[0].text == "ü in two writes"
    rows = {row.resource: row async for row in Interval.objects.all()}
    assert {name: row.units for name, row in rows.items()} == {
        "nvidia.com/gpu": Decimal(2),
        "cpu": Decimal(1),
        "memory": Decimal(1),
    }
    gpu = rows["nvidia.com/gpu"]
    assert (gpu.flavor, gpu.gpu_model, gpu.estimated) == ("h100", "NVIDIA H100", False)
    assert isinstance(gpu.ended_at, datetime)
    assert job.started_at is not None
    assert 0 <= (gpu.ended_at - gpu.started_at).total_seconds() <= 20


async def test_each_run_of_an_array_has_its_own_log(backend: LocalBackend) -> None:
    script = "echo run $JOB_COMPLETION_INDEX"
    await start(WorkSpec(image="here", command=("/bin/sh", "-c", script), runs=5, parallelism=2))
    await until(stored, 40)
    streams = [stream async for stream in Stream.objects.order_by("pod_index")]
    texts = [await sync_to_async(lambda which: b"".join(logs.content(which)))(stream) for stream in streams]
    assert texts == [b"run %d\n" % index for index in range(5)]
    assert await Interval.objects.filter(resource="cpu").acount() == 5


async def test_case_31_a_job_that_waits_in_the_queue_holds_nothing(backend: LocalBackend) -> None:
    sleeps = WorkSpec(image="here", command=("/bin/sleep", "60"), gpus=4, flavor="h100")
    job = await start(sleeps)
    await until(is_in(job, State.RUNNING), 20)
    other = await sync_to_async(one_more)(job)
    await until(is_in(other, State.QUEUED), 20)
    member = await User.objects.aget(username="member")
    await sync_to_async(jobs.cancel)(actor=member, job=other)
    await sync_to_async(jobs.sweep)()
    await until(is_in(other, State.CANCELLED), 20)
    assert await Interval.objects.filter(job=other).acount() == 0
    assert await Interval.objects.filter(job=job, ended_at__isnull=True).acount() == 3
