"""What the operator sees of the jobs' way: in, to the cluster, to the end; and what is late."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.clusters.specs import PassingError
from portal.core import metrics
from portal.core.clock import now
from portal.jobs.models import TERMINAL, Attempt, Job, State
from portal.jobs.selectors import figures
from portal.jobs.services import cancel, dispatch, submit, sweep
from tests.jobs.cluster import ClusterDouble
from tests.jobs.conftest import Ask
from tests.support.metrics import counted

pytestmark = pytest.mark.django_db


def test_a_job_is_counted_in_and_on_its_way(
    cluster: ClusterDouble, ask: Ask, django_capture_on_commit_callbacks: object
) -> None:
    names = ("beamtime_jobs_submitted_total", "beamtime_job_dispatch_seconds_count", "beamtime_jobs_swept_total")
    before = [counted(name) for name in names]
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        first = submit(ask(idempotency_key="once")).job
        submit(ask(idempotency_key="once"))
        for _ in range(3):
            submit(ask())
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        dispatch(first.attempts.get().pk)
        sweep()
    assert [counted(name) - was for name, was in zip(names, before, strict=True)] == [4, 4, 3]


def test_an_end_is_counted_once_by_how(
    cluster: ClusterDouble, ask: Ask, django_capture_on_commit_callbacks: object
) -> None:
    before = counted("beamtime_jobs_ended_total", state="cancelled")
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        request = ask()
        job = submit(request).job
        cancel(actor=request.user, job=job)
        sweep()
        cancel(actor=request.user, job=Job.objects.get(pk=job.pk))
    assert Job.objects.get(pk=job.pk).state == State.CANCELLED
    assert counted("beamtime_jobs_ended_total", state="cancelled") - before == 1


def test_the_ends_that_are_counted_are_all_there_are() -> None:
    [family] = metrics.JOBS_ENDED.collect()
    assert {sample.labels["state"] for sample in family.samples} == {str(state) for state in TERMINAL}


def test_figures_say_what_is_under_way_and_what_is_late(cluster: ClusterDouble, ask: Ask) -> None:
    assert figures.due() == figures.Due(rows=0, since=None)
    assert figures.oldest_submitted() is None
    assert set(figures.active_by_state().values()) == {0}
    jobs = [submit(ask()).job for _ in range(3)]
    dispatch(jobs[0].attempts.get().pk)
    late = now() - timedelta(minutes=10)
    Job.objects.filter(pk=jobs[1].pk).update(submitted_at=late)
    Attempt.objects.filter(job=jobs[1]).update(due_at=late)
    assert figures.active_by_state() == {
        "submitted": 2, "queued": 1, "starting": 0, "running": 0, "cancelling": 0
    }  # fmt: skip
    assert figures.due() == figures.Due(rows=2, since=late)
    assert figures.oldest_submitted() == late
    # Claimed by somebody, or waiting for its next try: not late.
    cluster.fail("create", PassingError("503"), times=2)
    sweep()
    assert figures.due().rows == 0
    assert figures.oldest_submitted() == late


def test_figures_read_nothing_but_what_is_under_way(cluster: ClusterDouble, ask: Ask) -> None:
    """However many jobs there have ever been: each question is answered by a partial index."""
    for ask_figures in (figures.active_by_state, figures.due, figures.oldest_submitted):
        with CaptureQueriesContext(connection) as caught:
            ask_figures()
        assert len(caught) == 1
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {caught[0]['sql']}")
                plan = " ".join(str(row[-1]) for row in cursor.fetchall())
            assert "attempts_due" in plan or "attempts_in_cluster" in plan, plan
