"""Why Kueue lets a job wait, from its own words."""

import pytest

from portal.clusters.specs import Condition, WorkloadFacts
from portal.jobs.policy.waiting import waiting_words
from tests.jobs.facts import at

POD_SET = "couldn't assign flavors to pod set main: "
NEVER = (
    "insufficient quota for nvidia.com/gpu in flavor h100, previously considered podsets requests (0) + "
    "current podset request (6) > maximum capacity (5)"
)


def _workload(*conditions: Condition, active: bool = True) -> WorkloadFacts:
    return WorkloadFacts(name="w", conditions=conditions, active=active)


def _pending(message: str, reason: str = "Pending") -> WorkloadFacts:
    return _workload(Condition("QuotaReserved", False, reason, message, at(1)))


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (
            POD_SET + "insufficient unused quota for nvidia.com/gpu in flavor h100, 1 more needed",
            "quota",
            "1 more GPU is",
        ),
        (POD_SET + "insufficient unused quota for cpu in flavor c, 500m more needed", "quota", "500m more cores are"),
        (POD_SET + "insufficient unused quota for memory in flavor c, 4Gi more needed", "quota", "4Gi more memory is"),
        (POD_SET + NEVER, "never_fits", "it asks 6 GPUs, the most this queue can give is 5"),
        (
            POD_SET + NEVER + ", insufficient unused quota for nvidia.com/gpu in flavor a, 2 more needed",
            "quota",
            "2 more",
        ),
        ("ClusterQueue gpu is inactive", "queue_closed", "ClusterQueue gpu takes no work now"),
        ("LocalQueue gpu is stopped", "queue_closed", "LocalQueue gpu takes no work now"),
        ("LocalQueue gpu doesn't exist", "misconfigured", "Set up wrongly"),
        (POD_SET + "resource cpu unavailable in ClusterQueue", "misconfigured", "Set up wrongly"),
        (POD_SET + "flavor h100 doesn't match node affinity", "misconfigured", "administrator"),
        ("Workload requires preemption, but it's gated", "quota", "Room is being made"),
        ("Something new that nobody here has read about", "waiting", "Waits in the queue"),
        ("", "waiting", "Waits in the queue"),
    ],
)
def test_the_gist_of_kueues_message(message: str, code: str, words: str) -> None:
    said = waiting_words(_pending(message), requeued=False)
    assert said.reason_code == code
    assert words in said.reason
    assert said.cluster_message == message


def test_the_finer_words_of_newer_kueues_are_understood_too() -> None:
    short = _pending(POD_SET + "insufficient unused quota for cpu in flavor c, 2 more needed", reason="WaitingForQuota")
    assert waiting_words(short, requeued=False).reason_code == "quota"
    assert (
        waiting_words(_pending("The workload is deactivated", reason="Deactivated"), requeued=False).reason_code
        == "held"
    )


def test_before_kueue_has_looked_nothing_is_guessed() -> None:
    assert waiting_words(None, requeued=False).reason_code == "waiting"
    assert waiting_words(_workload(), requeued=False).reason_code == "waiting"


def test_a_deactivated_workload_is_held() -> None:
    assert waiting_words(_workload(active=False), requeued=False).reason_code == "held"


def test_reserved_quota_that_waits_for_checks_says_so() -> None:
    reserved = Condition("QuotaReserved", True, "QuotaReserved", "", at(1))
    checks = Condition("Admitted", False, "UnsatisfiedChecks", "The workload has failed admission checks", at(1))
    said = waiting_words(_workload(reserved, checks), requeued=False)
    assert "admission checks" in said.reason
    assert said.cluster_reason == "UnsatisfiedChecks"


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("Preempted", "preempted"),
        ("PodsReadyTimeout", "evicted"),
        ("NodeFailures", "evicted"),
        ("ClusterQueueStopped", "queue_closed"),
        ("AdmissionCheck", "evicted"),
        ("SomethingNew", "evicted"),
    ],
)
def test_evictions_are_told_apart_and_use_up_no_try(reason: str, code: str) -> None:
    said = waiting_words(_workload(Condition("Evicted", True, reason, "why", at(5))), requeued=True)
    assert (said.reason_code, said.cluster_reason) == (code, reason)
    assert "no try is used up" in said.reason
