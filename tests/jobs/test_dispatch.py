"""From the row to the object: claimed, made once, and written down; or the reason why not."""

import threading
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.db import connection

from portal.clusters.specs import NameTaken, PassingError, PermanentError
from portal.core.clock import now
from portal.jobs.models import Attempt, Event, Job, JobSecret, State
from portal.jobs.services import cancel, dispatch, observe, submit, sweep
from portal.jobs.services.errands import LEASE, claim, run
from portal.jobs.services.settle import settle
from portal.quotas.models import LocalQueue
from tests.jobs.cluster import DAWN, ClusterDouble, lost_answer
from tests.jobs.conftest import Ask, attempt_of
from tests.jobs.facts import Told


@pytest.fixture
def sent(ask: Ask) -> Job:
    """A job that was just submitted; nobody has done anything about it yet."""
    return submit(ask(values={"token": "hf_secret"})).job


def _due(job: Job) -> None:
    """The pause is over."""
    Attempt.objects.filter(job=job, due_at__isnull=False).update(due_at=now())


# --- it works ----------------------------------------------------------------------------------------------------


def test_the_object_is_made_and_the_row_says_so(cluster: ClusterDouble, sent: Job) -> None:
    dispatch(attempt_of(sent).pk)
    attempt = attempt_of(sent)
    thing = cluster.things[attempt.object_name]
    assert (attempt.state, attempt.object_uid, attempt.created_at) == (State.QUEUED, thing.uid, thing.created_at)
    assert (attempt.spec_digest, attempt.due_at, attempt.claim_token) == (thing.spec.digest, None, None)
    sent.refresh_from_db()
    assert sent.state == State.QUEUED


def test_the_spec_carries_everything_and_secrets_travel_apart(cluster: ClusterDouble, sent: Job) -> None:
    dispatch(attempt_of(sent).pk)
    (thing,) = cluster.things.values()
    assert thing.secrets == {"HF_TOKEN": "hf_secret"}
    assert "hf_secret" not in str(thing.spec)
    spec = thing.spec
    assert (spec.job_id, spec.attempt, spec.namespace, spec.queue) == (str(sent.id), 1, "bt-vision", "cpu")
    assert (spec.team, spec.submitted_by, spec.display_name) == ("vision", "member", "Shell")


def test_the_teams_place_is_made_first_and_only_once(cluster: ClusterDouble, ask: Ask) -> None:
    for _ in range(3):
        submit(ask())
    sweep()
    assert cluster.calls.count("provision") == 1
    assert cluster.calls[0] == "provision"
    assert cluster.spaces["bt-vision"].queues == (("cpu", "cpu"),)
    assert LocalQueue.objects.get().provisioned_at is not None


def test_dispatching_twice_makes_one_object(cluster: ClusterDouble, sent: Job) -> None:
    dispatch(attempt_of(sent).pk)
    dispatch(attempt_of(sent).pk)
    sweep()
    assert sum(cluster.made.values()) == 1


def test_the_watcher_may_be_faster_than_the_answer(cluster: ClusterDouble, sent: Job) -> None:
    """It sees the object and even its start before the creation's own answer is written down."""
    (errand,) = claim(limit=1)
    cluster.needs_space = False
    outcome = run(errand)
    attempt = attempt_of(sent)
    story = Told(name=attempt.object_name, namespace=attempt.namespace, job_id=str(sent.id))
    story.created()
    observe(story.admitted(10))
    settle(errand, outcome)
    attempt = attempt_of(sent)
    assert (attempt.state, attempt.due_at, attempt.claim_token) == (State.STARTING, None, None)
    assert attempt.spec_digest


def test_an_attempt_that_the_watcher_found_running_is_never_deleted_for_being_due(
    cluster: ClusterDouble, sent: Job
) -> None:
    dispatch(attempt_of(sent).pk)
    Attempt.objects.filter(job=sent).update(state=State.RUNNING, due_at=now())
    sweep()
    assert len(cluster.things) == 1
    assert attempt_of(sent).due_at is None


# --- claims ----------------------------------------------------------------------------------------------------------


def test_a_claim_keeps_others_away_until_its_lease_is_over(cluster: ClusterDouble, sent: Job) -> None:
    assert len(claim(limit=10)) == 1
    assert claim(limit=10) == []
    with time_machine.travel(now() + LEASE + timedelta(seconds=1)):
        assert len(claim(limit=10)) == 1


def test_whoever_lost_the_claim_changes_nothing(cluster: ClusterDouble, sent: Job) -> None:
    (stale,) = claim(limit=1)
    cluster.needs_space = False
    outcome = run(stale)
    Attempt.objects.filter(job=sent).update(claim_token=uuid4())
    before = Attempt.objects.filter(job=sent).values().get()
    settle(stale, outcome)
    assert Attempt.objects.filter(job=sent).values().get() == before


def test_a_claim_that_is_nearly_over_begins_nothing(cluster: ClusterDouble, sent: Job, monkeypatch: Any) -> None:
    monkeypatch.setattr("portal.jobs.services.errands.LEAST_LEASE_SECONDS", 1000)
    assert sweep() == 0 or cluster.calls == ["provision"]
    assert "create" not in cluster.calls


@pytest.mark.django_db(transaction=True)
def test_workers_at_the_same_time_share_the_work_and_double_nothing(cluster: ClusterDouble, ask: Ask) -> None:
    for _ in range(24):
        submit(ask())
    broken: list[BaseException] = []

    def work() -> None:
        try:
            sweep()
        except BaseException as error:
            broken.append(error)
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert broken == []
    assert len(cluster.made) == 24
    assert set(cluster.made.values()) == {1}
    assert set(Attempt.objects.values_list("state", flat=True)) == {State.QUEUED}


# --- it does not work -----------------------------------------------------------------------------------------------


def test_a_refusal_for_good_rejects_the_job_with_the_clusters_words(cluster: ClusterDouble, sent: Job) -> None:
    cluster.fail("create", PermanentError("Invalid", 'spec.template: Invalid value: "nodes"'))
    dispatch(attempt_of(sent).pk)
    attempt = attempt_of(sent)
    assert (attempt.state, attempt.reason_code, attempt.cluster_reason) == (State.REJECTED, "refused", "Invalid")
    assert "Invalid value" in attempt.cluster_message
    assert (attempt.due_at, attempt.withdrawn_at is not None) == (None, True)
    assert not JobSecret.objects.exists()
    sent.refresh_from_db()
    assert (sent.state, sent.ended_at is not None) == (State.REJECTED, True)


def test_a_name_that_is_taken_by_a_stranger_rejects_the_job(cluster: ClusterDouble, sent: Job) -> None:
    cluster.fail("create", NameTaken("AlreadyExists", "exists and is not this one"))
    dispatch(attempt_of(sent).pk)
    assert attempt_of(sent).reason_code == "name_taken"


def test_case_23_a_lost_answer_is_unknown_checking_then_the_truth(cluster: ClusterDouble, sent: Job) -> None:
    cluster.fail("create", lost_answer(), after=True)
    dispatch(attempt_of(sent).pk)
    attempt = attempt_of(sent)
    assert (attempt.state, attempt.reason_code) == (State.SUBMITTED, "checking")
    assert "unknown whether it arrived. Checking." in attempt.reason
    assert (attempt.last_error, len(cluster.things)) == ("the connection was closed while the answer was awaited", 1)
    assert attempt.due_at is not None
    assert attempt.due_at > now()
    _due(sent)
    sweep()
    attempt = attempt_of(sent)
    assert (attempt.state, attempt.created_at, attempt.last_error) == (State.QUEUED, DAWN + timedelta(seconds=1), "")
    assert sum(cluster.made.values()) == 1, "adopted, not made again"
    assert "unanswered" in Event.objects.values_list("kind", flat=True)


def test_case_23_the_watcher_may_bring_the_truth_too(cluster: ClusterDouble, sent: Job) -> None:
    cluster.fail("create", lost_answer(), after=True)
    dispatch(attempt_of(sent).pk)
    attempt = attempt_of(sent)
    story = Told(name=attempt.object_name, namespace=attempt.namespace, job_id=str(sent.id))
    observe(story.created())
    attempt = attempt_of(sent)
    assert (attempt.state, attempt.due_at) == (State.QUEUED, None)


def test_pauses_grow_and_are_never_all_the_same(cluster: ClusterDouble, ask: Ask) -> None:
    cluster.fail("create", PassingError("503"), times=1000)
    jobs = [submit(ask()).job for _ in range(6)]
    pauses: list[list[float]] = []
    for _ in range(9):
        before = now()
        sweep()
        due = Attempt.objects.filter(job__in=jobs).values_list("due_at", flat=True)
        pauses.append([(at - before).total_seconds() for at in due if at is not None])
        Attempt.objects.update(due_at=now())
    assert min(pauses[0]) > 0.4
    assert max(pauses[0]) < 2
    assert min(pauses[8]) > 25
    assert max(pauses[8]) < 62
    assert all(len({round(pause, 2) for pause in each}) > 1 for each in pauses)
    assert set(Attempt.objects.values_list("state", flat=True)) == {State.SUBMITTED}, "never given up"


def test_the_clusters_own_wish_for_a_pause_is_kept(cluster: ClusterDouble, sent: Job) -> None:
    cluster.fail("create", PassingError("429", retry_after=20))
    dispatch(attempt_of(sent).pk)
    due = attempt_of(sent).due_at
    assert due is not None
    assert due >= now() + timedelta(seconds=19)


def test_after_an_hour_a_person_is_told_since_when_nothing_was_heard(cluster: ClusterDouble, sent: Job) -> None:
    cluster.fail("create", PassingError("no route to host"), times=2)
    dispatch(attempt_of(sent).pk)
    with time_machine.travel(now() + timedelta(hours=2)):
        sweep()
        attempt = attempt_of(sent)
        assert (attempt.state, attempt.reason_code) == (State.SUBMITTED, "no_word")
        assert f"No word from the cluster since {sent.submitted_at:%d %b %Y, %H:%M} UTC" in attempt.reason
        _due(sent)
        sweep()
    assert attempt_of(sent).state == State.QUEUED


def test_a_namespace_that_was_deleted_is_made_again(cluster: ClusterDouble, ask: Ask) -> None:
    submit(ask())
    sweep()
    cluster.spaces.clear()
    second = submit(ask()).job
    dispatch(attempt_of(second).pk)
    dispatch(attempt_of(second).pk)
    assert attempt_of(second).state == State.QUEUED
    assert cluster.calls.count("provision") == 2


def test_a_place_that_an_operator_must_allow_rejects_no_job(cluster: ClusterDouble, sent: Job) -> None:
    cluster.fail("provision", PermanentError("Forbidden", "cannot create namespaces"))
    dispatch(attempt_of(sent).pk)
    attempt = attempt_of(sent)
    assert (attempt.state, attempt.reason_code) == (State.SUBMITTED, "checking")
    assert "namespace could not be made" in attempt.reason
    assert "cannot create namespaces" in attempt.cluster_message
    _due(sent)
    sweep()
    assert attempt_of(sent).state == State.QUEUED


def test_a_fault_inside_the_gateway_ends_no_job(cluster: ClusterDouble, sent: Job) -> None:
    cluster.fail("create", KeyError("surprise"))
    dispatch(attempt_of(sent).pk)
    attempt = attempt_of(sent)
    assert (attempt.state, attempt.last_error) == (State.SUBMITTED, "KeyError inside Beamtime; see its log")


def test_settings_that_lead_to_no_cluster_end_no_job(sent: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str, kind: str) -> None:
        raise OSError("no such kubeconfig")

    monkeypatch.setattr("portal.clusters.gateway._backend", nowhere)
    sweep()
    attempt = attempt_of(sent)
    assert (attempt.state, attempt.claim_token) == (State.SUBMITTED, None)
    assert "no such kubeconfig" in attempt.last_error


def test_a_secret_whose_key_is_gone_rejects_the_job_and_says_so(cluster: ClusterDouble, sent: Job) -> None:
    JobSecret.objects.update(sealed=b"not sealed with any key of ours")
    dispatch(attempt_of(sent).pk)
    attempt = attempt_of(sent)
    assert (attempt.state, attempt.cluster_reason) == (State.REJECTED, "SecretUnreadable")
    assert "create" not in cluster.calls


def test_a_job_that_was_cancelled_while_it_was_being_made_is_taken_away_again(
    cluster: ClusterDouble, sent: Job
) -> None:
    (errand,) = claim(limit=1)
    cluster.needs_space = False
    outcome = run(errand)
    assert sent.submitted_by is not None
    cancel(actor=sent.submitted_by, job=sent)
    assert attempt_of(sent).state == State.CANCELLING
    settle(errand, outcome)
    assert attempt_of(sent).due_at is not None
    sweep()
    assert cluster.things == {}


def test_another_clusters_rows_are_left_alone(cluster: ClusterDouble, sent: Job, settings: Any) -> None:
    settings.BEAMTIME_CLUSTER_NAME = "elsewhere"
    sweep()
    assert cluster.calls == []
