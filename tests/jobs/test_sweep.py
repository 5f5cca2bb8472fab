"""A backlog: several calls at a time, in batches, and the database in one thread."""

import threading
import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.clusters.specs import PassingError
from portal.jobs.models import Attempt, State
from portal.jobs.services import submit, sweep
from tests.jobs.cluster import ClusterDouble
from tests.jobs.conftest import Ask


def test_a_backlog_goes_out_at_least_twice_as_fast_as_one_by_one(cluster: ClusterDouble, ask: Ask) -> None:
    """Against a bare loop of the same calls on the same cluster, measured in the same run."""
    for _ in range(60):
        submit(ask())
    cluster.latency = 0.04
    started = time.perf_counter()
    assert sweep() == 60
    took = time.perf_counter() - started
    specs = [thing.spec for thing in cluster.things.values()]
    cluster.things.clear()
    started = time.perf_counter()
    for spec in specs:
        cluster.create(spec, {})
    bare = time.perf_counter() - started
    assert Attempt.objects.filter(state=State.QUEUED).count() == 60
    assert bare / took >= 2.0, f"sweep {took:.2f} s, bare loop {bare:.2f} s"


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
