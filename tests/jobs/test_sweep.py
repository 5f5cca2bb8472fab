"""A backlog: several calls at a time, in batches, and the database in one thread."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.clusters.specs import PassingError
from portal.core.clock import now
from portal.jobs.models import Attempt, Job, State
from portal.jobs.services import dispatch, submit, sweep
from portal.jobs.services.errands import claim, prepare, run
from portal.jobs.services.settle import settle_all
from tests.jobs.cluster import ClusterDouble
from tests.jobs.conftest import Ask


def test_a_hint_takes_what_is_late_along(cluster: ClusterDouble, ask: Ask) -> None:
    """Hints are followed one by one; a thousand of them would each wait for one call to the cluster."""
    for _ in range(50):
        submit(ask())
    Attempt.objects.update(due_at=now() - timedelta(seconds=5))
    fresh = submit(ask()).job.attempts.get()
    cluster.latency = 0.005
    dispatch(fresh.pk)
    assert len(cluster.made) == 51
    assert len(cluster.threads - {threading.get_ident()}) > 1
    assert set(Attempt.objects.values_list("state", flat=True)) == {State.QUEUED}


def test_a_hint_leaves_alone_what_has_a_hint_of_its_own_under_way(cluster: ClusterDouble, ask: Ask) -> None:
    hinted, other = (submit(ask()).job.attempts.get() for _ in range(2))
    dispatch(hinted.pk)
    assert [job.pk for job in Job.objects.filter(state=State.SUBMITTED)] == [other.job_id]


def test_a_hint_that_comes_late_finds_nothing_left_to_do(cluster: ClusterDouble, ask: Ask) -> None:
    attempt = submit(ask()).job.attempts.get()
    sweep()
    with CaptureQueriesContext(connection) as caught:
        dispatch(attempt.pk)
    assert (len(caught), len(cluster.made)) == (1, 1)


def test_a_batch_of_which_the_watcher_was_faster_is_written_down_together(cluster: ClusterDouble, ask: Ask) -> None:
    for _ in range(20):
        submit(ask())
    claimed = claim(limit=20)
    done = [(errand, run(errand)) for errand in prepare(claimed)]
    Attempt.objects.update(state=State.RUNNING, object_uid="seen", created_at=now(), due_at=None, revision=7)
    with CaptureQueriesContext(connection) as caught:
        settle_all(done)
    assert len(caught) < 20 + 6
    row = Attempt.objects.first()
    assert row is not None
    assert (row.state, row.object_uid, row.claim_token, row.due_at) == (State.RUNNING, "seen", None, None)
    assert not Attempt.objects.filter(spec_digest="").exists()


def test_only_calls_to_the_cluster_are_made_in_threads(cluster: ClusterDouble, ask: Ask) -> None:
    """A thread that used the database would open a connection of its own and see nothing of the test's."""
    for _ in range(20):
        submit(ask())
    cluster.latency = 0.005
    sweep()
    assert len(cluster.threads - {threading.get_ident()}) > 1
    assert set(Attempt.objects.values_list("state", flat=True)) == {State.QUEUED}


def test_one_that_hangs_on_the_cluster_does_not_hold_the_others(cluster: ClusterDouble, ask: Ask) -> None:
    for _ in range(10):
        submit(ask())
    cluster.fail("create", PassingError("503"), times=3)
    sweep()
    states = list(Attempt.objects.values_list("state", flat=True))
    assert (states.count(State.QUEUED), states.count(State.SUBMITTED)) == (7, 3)


def test_a_sweep_of_nothing_asks_one_question(db: None, cluster: ClusterDouble) -> None:
    with CaptureQueriesContext(connection) as caught:
        assert sweep() == 0
    assert len(caught) == 1


def test_a_sweep_ends_in_time_however_much_is_left(cluster: ClusterDouble, ask: Ask) -> None:
    for _ in range(100):
        submit(ask())
    cluster.latency = 0.02
    done = sweep(budget_seconds=0.05)
    assert 0 < done < 100
    assert Attempt.objects.filter(claim_token__isnull=False).count() == 0, "nothing stays claimed"
    sweep()
    assert len(cluster.made) == 100


@pytest.mark.parametrize("count", [1, 5, 40])
def test_questions_grow_with_the_rows_by_a_fixed_few_each(cluster: ClusterDouble, ask: Ask, count: int) -> None:
    submit(ask())
    sweep()
    for _ in range(count):
        submit(ask())
    with CaptureQueriesContext(connection) as caught:
        sweep()
    assert len(caught) <= 20 + 3 * count
