"""A node that says nothing any more, before the cluster gives it up; on a cluster of one node that is never."""

from dataclasses import replace

from portal.clusters.specs import Condition, PodFacts
from portal.jobs.models import Job, State
from portal.jobs.services import observe
from tests.jobs.conftest import attempt_of
from tests.jobs.facts import Told, at, pod, running


def unready(facts: PodFacts) -> PodFacts:
    """What the node controller makes of a pod whose kubelet is silent: it touches `Ready` and nothing else."""
    said = (Condition("Ready", False, at=at(90)), Condition("ContainersReady", True, at=at(31)))
    return replace(facts, conditions=said)


def ran(told: Told) -> None:
    for facts in (told.created(), told.admitted(), told.pods(running(pod(), 30))):
        observe(facts)


def test_the_silence_of_a_node_is_told_and_taken_back_when_it_speaks_again(job: Job, told: Told) -> None:
    ran(told)
    observe(told.pods(unready(running(pod(), 30))))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code) == (State.RUNNING, "node_lost")
    assert attempt.reason == "No word from node h100-02. Checking; the job may still be running there."

    observe(told.pods(running(pod(), 30)))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code, attempt.reason) == (State.RUNNING, "", "")


def test_a_container_that_is_not_ready_by_itself_says_nothing_about_its_node(job: Job, told: Told) -> None:
    ran(told)
    said = (Condition("Ready", False), Condition("ContainersReady", False))
    observe(told.pods(replace(running(pod(), 30), conditions=said)))
    assert attempt_of(job).reason_code == ""


def test_a_silent_node_that_the_cluster_has_not_given_up_makes_no_job_lost(job: Job, told: Told) -> None:
    ran(told)
    observe(told.pods(unready(running(pod(), 30))))
    observe(told.failing(95))
    assert attempt_of(job).state == State.RUNNING


def test_silence_does_not_stand_in_the_way_of_the_true_end(job: Job, told: Told) -> None:
    ran(told)
    observe(told.pods(unready(running(pod(), 30))))
    observe(told.pods(replace(unready(running(pod(), 30)), gone=True, gone_at=at(120))))
    observe(told.failed(121))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code) == (State.FAILED, "vanished")
