"""Finished objects leave the cluster once their story is stored."""

from datetime import timedelta
from typing import Any

import pytest

from portal.core.clock import now
from portal.jobs.models import Attempt, Job, State
from portal.jobs.services import collect_finished, dispatch, mark_stored, submit, sweep
from tests.jobs.cluster import ClusterDouble
from tests.jobs.conftest import Ask, attempt_of


@pytest.fixture
def finished(cluster: ClusterDouble, ask: Ask) -> Job:
    """A job that has ended two hours ago; its object is still there."""
    job = submit(ask()).job
    dispatch(attempt_of(job).pk)
    Attempt.objects.update(state=State.SUCCEEDED, ended_at=now() - timedelta(hours=2))
    return job


def _stored(job: Job) -> None:
    mark_stored(job_id=job.id, attempt_number=1)


def test_an_object_stays_until_its_story_is_stored(cluster: ClusterDouble, finished: Job) -> None:
    assert collect_finished() == 0
    _stored(finished)
    assert collect_finished() == 1
    sweep()
    assert cluster.things == {}
    attempt = attempt_of(finished)
    assert (attempt.state, attempt.withdrawn_at is not None, attempt.due_at) == (State.SUCCEEDED, True, None)
    assert collect_finished() == 0


def test_an_object_stays_as_long_as_the_operator_wants(cluster: ClusterDouble, finished: Job, settings: Any) -> None:
    _stored(finished)
    settings.BEAMTIME_KEEP_FINISHED = 3 * 3600
    assert collect_finished() == 0


def test_a_story_that_cannot_be_stored_keeps_an_object_for_a_week_only(cluster: ClusterDouble, finished: Job) -> None:
    Attempt.objects.update(ended_at=now() - timedelta(days=8))
    assert collect_finished() == 1


def test_what_goes_on_is_never_collected(cluster: ClusterDouble, finished: Job) -> None:
    Attempt.objects.update(state=State.RUNNING)
    _stored(finished)
    assert collect_finished() == 0
    assert attempt_of(finished).stored_at is None, "nothing is stored of what has not ended"


def test_being_stored_is_said_once(cluster: ClusterDouble, finished: Job) -> None:
    _stored(finished)
    first = attempt_of(finished).stored_at
    _stored(finished)
    assert attempt_of(finished).stored_at == first
