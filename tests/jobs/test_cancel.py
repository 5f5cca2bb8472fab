"""Cancelling in every state and in every race."""

from datetime import timedelta

import pytest
import time_machine

from portal.audit.models import Entry
from portal.clusters.specs import PassingError
from portal.core.clock import now
from portal.core.errors import Forbidden, Refused
from portal.jobs.models import TERMINAL, Attempt, Event, Job, JobSecret, State
from portal.jobs.services import cancel, dispatch, observe, submit, sweep
from portal.jobs.services.errands import claim, run
from portal.jobs.services.settle import LAST_WORD, settle
from portal.teams.models import User
from tests import factories
from tests.jobs.cluster import ClusterDouble, lost_answer
from tests.jobs.conftest import Ask, attempt_of
from tests.jobs.facts import Told, at, ended, pod, running


@pytest.fixture
def made(cluster: ClusterDouble, ask: Ask) -> Job:
    """A job whose object is in the cluster."""
    job = submit(ask()).job
    dispatch(attempt_of(job).pk)
    return job


@pytest.fixture
def story(cluster: ClusterDouble, made: Job) -> Told:
    """What the watcher tells about `made`; it runs."""
    attempt = attempt_of(made)
    told = Told(name=attempt.object_name, namespace=attempt.namespace, job_id=str(made.id))
    told.created()
    assert told.now.job is not None
    told._job(uid=attempt.object_uid)
    observe(told.admitted(10))
    observe(told.pods(running(pod(), 30)))
    return told


def _sweep_later(seconds: float = 0) -> None:
    with time_machine.travel(now() + LAST_WORD + timedelta(seconds=seconds or 10)):
        sweep()


# --- in each state ---------------------------------------------------------------------------------------------------


def test_a_job_that_was_never_sent_is_cancelled_at_once(cluster: ClusterDouble, ask: Ask, member: User) -> None:
    job = submit(ask(values={"token": "secret"})).job
    cancel(actor=member, job=job)
    attempt = attempt_of(job)
    assert (job.state, attempt.state, attempt.due_at) == (State.CANCELLED, State.CANCELLED, None)
    assert (job.cancel_requested_by_name, job.reason) == ("member", "Cancelled by member.")
    assert job.ended_at is not None
    assert not JobSecret.objects.exists()
    sweep()
    assert cluster.calls == []


def test_a_job_in_the_queue_is_cancelling_until_the_cluster_confirms(
    cluster: ClusterDouble, made: Job, member: User
) -> None:
    cancel(actor=member, job=made)
    assert made.state == State.CANCELLING
    sweep()
    assert cluster.things == {}
    assert attempt_of(made).state == State.CANCELLING, "the watcher may still bring another end"
    _sweep_later()
    attempt = attempt_of(made)
    assert (attempt.state, attempt.reason, attempt.due_at) == (State.CANCELLED, "Cancelled by member.", None)


def test_a_running_job_is_cancelled_when_the_watcher_sees_it_gone(
    cluster: ClusterDouble, made: Job, story: Told, member: User
) -> None:
    cancel(actor=member, job=made)
    cluster.lingering = 100
    sweep()
    observe(story.gone(100))
    assert attempt_of(made).state == State.CANCELLING, "its pod still holds the GPUs"
    stopped = ended(pod(deletion_requested_at=at(100)), since=30, until=110, code=143)
    observe(story.pods(stopped))
    attempt = attempt_of(made)
    assert (attempt.state, attempt.reason_code, attempt.ended_at) == (State.CANCELLED, "cancelled", at(110))


def test_deletion_is_asked_for_until_nothing_is_left(cluster: ClusterDouble, made: Job, member: User) -> None:
    cluster.lingering = 3
    cancel(actor=member, job=made)
    for _ in range(4):
        sweep()
        Attempt.objects.filter(due_at__isnull=False).update(due_at=now())
    assert cluster.things == {}
    _sweep_later()
    assert attempt_of(made).state == State.CANCELLED


@pytest.mark.parametrize("state", sorted(TERMINAL - {State.CANCELLED}))
def test_what_is_over_cannot_be_cancelled_and_says_how_it_ended(job: Job, member: User, state: State) -> None:
    Attempt.objects.update(state=state)
    with pytest.raises(Refused, match=f"over already: {state}"):
        cancel(actor=member, job=job)


def test_what_was_cancelled_already_is_as_it_was_wished(job: Job, member: User) -> None:
    Attempt.objects.update(state=State.CANCELLED)
    Job.objects.update(state=State.CANCELLED)
    assert cancel(actor=member, job=job).state == State.CANCELLED


def test_the_same_wish_twice_is_one(cluster: ClusterDouble, made: Job, member: User, lead: User) -> None:
    cancel(actor=member, job=made)
    revision = made.revision
    cancel(actor=lead, job=made)
    assert (made.revision, made.cancel_requested_by_name) == (revision, "member")
    assert Entry.objects.filter(action="job.cancel").count() == 1
    assert Event.objects.filter(kind="cancelling").count() == 1


# --- who -------------------------------------------------------------------------------------------------------------


def test_a_lead_may_cancel_anybodys_job_a_member_only_ones_own(made: Job, site: factories.Site, lead: User) -> None:
    other = factories.make_user("other")
    made.team.memberships.create(user=other)
    with pytest.raises(Forbidden):
        cancel(actor=other, job=made)
    assert cancel(actor=lead, job=made).state == State.CANCELLING


def test_strangers_and_auditors_cancel_nothing(made: Job, outsider: User, auditor: User) -> None:
    for person in (outsider, auditor):
        with pytest.raises(Forbidden):
            cancel(actor=person, job=made)
    assert attempt_of(made).state == State.QUEUED


# --- races -----------------------------------------------------------------------------------------------------------


def test_the_true_end_wins_if_it_came_before_the_deletion(
    cluster: ClusterDouble, made: Job, story: Told, member: User
) -> None:
    cancel(actor=member, job=made)
    sweep()
    story.pods(ended(pod(), since=30, until=90, code=0))
    observe(story.complete(91))
    attempt = attempt_of(made)
    assert (attempt.state, attempt.ended_at, attempt.due_at) == (State.SUCCEEDED, at(91), None)
    _sweep_later()
    assert attempt_of(made).state == State.SUCCEEDED


def test_a_true_end_and_the_deletion_seen_together_is_still_the_true_end(
    cluster: ClusterDouble, made: Job, story: Told, member: User
) -> None:
    cancel(actor=member, job=made)
    story.complete(91)
    observe(story.gone(95))
    assert attempt_of(made).state == State.SUCCEEDED


def test_an_end_that_only_answers_the_deletion_is_a_cancellation(
    cluster: ClusterDouble, made: Job, story: Told, member: User
) -> None:
    """A place that marks a Job as failed, or even complete, because its processes were told to stop."""
    cancel(actor=member, job=made)
    story.deleting()
    story.pods(ended(pod(deletion_requested_at=at(100)), since=30, until=101, code=143))
    observe(story.failed(101))
    assert attempt_of(made).state == State.CANCELLING
    observe(story.gone(102))
    assert attempt_of(made).state == State.CANCELLED


def test_a_failure_from_before_the_deletion_stands(
    cluster: ClusterDouble, made: Job, story: Told, member: User
) -> None:
    cancel(actor=member, job=made)
    story.deleting()
    story.pods(ended(pod(deletion_requested_at=at(100)), since=30, until=98, code=3))
    observe(story.failed(99))
    attempt = attempt_of(made)
    assert (attempt.state, attempt.reason_code) == (State.FAILED, "exit_code")


def test_cancelled_while_the_creation_is_under_way(cluster: ClusterDouble, ask: Ask, member: User) -> None:
    job = submit(ask()).job
    (errand,) = claim(limit=1)
    cluster.needs_space = False
    cancel(actor=member, job=job)
    assert job.state == State.CANCELLING, "it may be made in this very moment"
    settle(errand, run(errand))
    sweep()
    _sweep_later()
    assert (cluster.things, attempt_of(job).state) == ({}, State.CANCELLED)


def test_cancelled_before_a_creation_whose_answer_is_lost(cluster: ClusterDouble, ask: Ask, member: User) -> None:
    job = submit(ask()).job
    cluster.fail("create", lost_answer(), after=True)
    dispatch(attempt_of(job).pk)
    cancel(actor=member, job=job)
    assert (job.state, len(cluster.things)) == (State.CANCELLING, 1)
    sweep()
    assert (cluster.things, attempt_of(job).state) == ({}, State.CANCELLED)


def test_cancelled_after_a_creation_that_never_arrived(cluster: ClusterDouble, ask: Ask, member: User) -> None:
    job = submit(ask()).job
    cluster.fail("create", PassingError("no route to host"))
    dispatch(attempt_of(job).pk)
    cancel(actor=member, job=job)
    sweep()
    assert attempt_of(job).state == State.CANCELLED, "nothing was ever seen of it, so nothing is waited for"


def test_a_cluster_that_does_not_answer_keeps_it_cancelling_and_says_so(
    cluster: ClusterDouble, made: Job, member: User
) -> None:
    cluster.fail("delete", PassingError("timed out"))
    cancel(actor=member, job=made)
    sweep()
    attempt = attempt_of(made)
    assert (attempt.state, attempt.reason_code, attempt.last_error) == (State.CANCELLING, "checking", "timed out")
    assert attempt.due_at is not None
    with time_machine.travel(now() + timedelta(seconds=61)):
        sweep()
    assert cluster.things == {}


def test_facts_that_come_late_do_not_end_the_cancelling(
    cluster: ClusterDouble, made: Job, story: Told, member: User
) -> None:
    cancel(actor=member, job=made)
    observe(story.now)
    observe(story.preempted(200))
    assert attempt_of(made).state == State.CANCELLING
