"""Somebody else writes between the reading of a row and its writing. The guard sees it, whatever the database locks."""

from collections.abc import Callable
from importlib import import_module
from typing import Any
from uuid import uuid4

import pytest

from portal.jobs.models import Attempt, Job, State
from portal.jobs.services import cancel, observe, submit
from portal.jobs.services.errands import claim, run
from portal.jobs.services.settle import settle, settle_all
from portal.teams.models import User
from tests.jobs.cluster import ClusterDouble
from tests.jobs.conftest import Ask, attempt_of
from tests.jobs.facts import Told, at, pod, running


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Have something happen once, right after the named verb has read its row."""

    def arrange(verb: str, happens: Callable[[], object]) -> None:
        module = import_module(f"portal.jobs.services.{verb}")
        real, left = module.snapshot_of, [True]

        def read(*args: Any) -> Any:
            found = real(*args)
            if left and left.pop():
                happens()
            return found

        monkeypatch.setattr(module, "snapshot_of", read)

    return arrange


@pytest.fixture
def sent(cluster: ClusterDouble, ask: Ask) -> Job:
    cluster.needs_space = False
    return submit(ask()).job


Meanwhile = Callable[[str, Callable[[], object]], None]


@pytest.mark.parametrize("many", [False, True])
def test_a_claim_that_passes_on_while_the_answer_is_applied(
    cluster: ClusterDouble, sent: Job, ask: Ask, meanwhile: Meanwhile, many: bool
) -> None:
    other = submit(ask()).job
    found = [(errand, run(errand)) for errand in claim(limit=2)]
    token = uuid4()
    meanwhile("settle", lambda: Attempt.objects.filter(job=sent).update(claim_token=token))
    if many:
        settle_all(found)
    else:
        for errand, outcome in found:
            settle(errand, outcome)
    attempt = attempt_of(sent)
    assert (attempt.claim_token, attempt.state, attempt.object_uid) == (token, State.SUBMITTED, "")
    assert attempt.due_at is not None
    assert attempt_of(other).state == State.QUEUED


def test_the_first_claim_of_a_job_in_the_moment_of_its_cancellation(
    cluster: ClusterDouble, sent: Job, member: User, meanwhile: Meanwhile
) -> None:
    """It would be made after it was called cancelled."""
    meanwhile("cancel", lambda: claim(limit=1))
    cancel(actor=member, job=sent)
    assert sent.state == State.CANCELLING


def test_a_cancellation_while_a_fact_is_taken_in(
    cluster: ClusterDouble, job: Job, told: Told, member: User, meanwhile: Meanwhile
) -> None:
    meanwhile("observe", lambda: cancel(actor=member, job=job))
    observe(told.admitted(10))
    assert attempt_of(job).state == State.CANCELLING


def test_an_end_that_is_taken_in_while_somebody_cancels(
    cluster: ClusterDouble, job: Job, told: Told, member: User, meanwhile: Meanwhile
) -> None:
    told.admitted(10)
    meanwhile("cancel", lambda: observe(told.complete(90)))
    with pytest.raises(Exception, match="over already: succeeded"):
        cancel(actor=member, job=job)
    assert attempt_of(job).state == State.SUCCEEDED


def test_two_facts_at_the_same_time_are_both_taken_in(job: Job, told: Told, meanwhile: Meanwhile) -> None:
    earlier = told.admitted(10)
    later = told.pods(running(pod(), 30))
    meanwhile("observe", lambda: observe(later))
    observe(earlier)
    attempt = attempt_of(job)
    assert (attempt.state, attempt.started_at) == (State.RUNNING, at(30))


def test_the_watcher_between_the_answer_and_its_writing(
    cluster: ClusterDouble, sent: Job, meanwhile: Meanwhile
) -> None:
    (errand,) = claim(limit=1)
    outcome = run(errand)
    attempt = attempt_of(sent)
    story = Told(name=attempt.object_name, namespace=attempt.namespace, job_id=str(sent.id))
    story.created()
    story._job(uid=cluster.things[attempt.object_name].uid)
    story.admitted(10)
    meanwhile("settle", lambda: observe(story.pods(running(pod(), 30))))
    settle(errand, outcome)
    attempt = attempt_of(sent)
    assert (attempt.state, attempt.due_at, attempt.claim_token) == (State.RUNNING, None, None)
    assert attempt.spec_digest
