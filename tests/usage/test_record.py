"""When a pod holds its devices, and when it lets go."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.clusters.specs import AttemptFacts, Condition, ContainerFacts, JobFacts, PodFacts, WorkloadFacts
from portal.core import leases
from portal.jobs.models import Job, State
from portal.teams.models import Membership, Team, User
from portal.usage import selectors, services
from portal.usage.models import EndSource, Interval
from tests import factories

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
REQUESTS = {"nvidia.com/gpu": Decimal(2), "cpu": Decimal("0.5"), "memory": Decimal(16), "ephemeral-storage": Decimal(1)}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@pytest.fixture
def job(team: Team, member: User, site: factories.Site) -> Job:
    return factories.make_job(team, member, site.gpu, state=State.RUNNING, gpu_model="NVIDIA A100")


def pod(**fields: Any) -> PodFacts:
    return PodFacts(**{"uid": "u-1", "name": "p-1", "phase": "Running", "node": "n-1", "requests": REQUESTS, **fields})


def ended(finished: datetime | None, name: str = "main", restart: int = 0) -> ContainerFacts:
    return ContainerFacts(name=name, state="terminated", exit_code=0, finished_at=finished, restart=restart)


def facts(job: Job, *pods: PodFacts, **fields: Any) -> AttemptFacts:
    return AttemptFacts(
        **{
            "cluster": "default",
            "namespace": "bt-vision",
            "name": "bt-1",
            "job_id": str(job.pk),
            "attempt": 1,
            "job": JobFacts(uid="j-1", name="bt-1", created_at=at(-60)),
            "workload": WorkloadFacts(name="w", flavors={"nvidia.com/gpu": "h100", "cpu": "h100", "memory": "h100"}),
            "pods": pods,
            **fields,
        }
    )


def rows(job: Job) -> dict[str, Interval]:
    return {row.resource: row for row in selectors.intervals_of(job)}


def test_an_interval_opens_with_the_binding_to_a_node(job: Job) -> None:
    services.record(facts(job, pod(scheduled_at=at(0.9))))
    found = rows(job)
    assert {name: row.units for name, row in found.items()} == {
        "nvidia.com/gpu": Decimal(2),
        "cpu": Decimal("0.5"),
        "memory": Decimal(16),
    }
    gpu = found["nvidia.com/gpu"]
    assert (gpu.started_at, gpu.ended_at, gpu.node, gpu.flavor, gpu.gpu_model) == (
        START,
        None,
        "n-1",
        "h100",
        "NVIDIA H100",
    )
    assert (found["cpu"].flavor, found["cpu"].gpu_model) == ("h100", "")
    assert selectors.intervals_of(job).filter(ended_at=None).count() == 3


def test_it_closes_with_the_last_container_whatever_the_order(job: Job) -> None:
    services.record(facts(job, pod(scheduled_at=at(0))))
    containers = (ended(at(3), "init"), ended(at(905), "main"), ended(at(900), "sidecar"))
    services.record(facts(job, pod(scheduled_at=at(0), phase="Succeeded", containers=containers)))
    gpu = rows(job)["nvidia.com/gpu"]
    assert (gpu.ended_at, gpu.end_source, gpu.estimated) == (at(905), EndSource.CONTAINERS, False)


def test_a_pod_first_seen_when_it_is_over_has_its_whole_interval(job: Job) -> None:
    services.record(facts(job, pod(scheduled_at=at(0), phase="Failed", containers=(ended(at(60)),))))
    assert {row.ended_at for row in rows(job).values()} == {at(60)}


def test_case_31_a_pod_that_no_node_was_given_to_costs_nothing(job: Job) -> None:
    waiting = pod(phase="Pending", node="", conditions=(Condition("PodScheduled", False, "Unschedulable"),))
    services.record(facts(job, waiting))
    services.record(facts(job, replace(waiting, gone=True, gone_at=at(9000), deletion_requested_at=at(9000))))
    services.record(facts(job, replace(waiting, phase="Failed"), job_gone=True, gone_at=at(9000)))
    assert rows(job) == {}


def test_a_pod_that_is_being_deleted_still_holds_on(job: Job) -> None:
    pulling = ContainerFacts(name="main", state="waiting", reason="ContainerCreating")
    leaving = pod(scheduled_at=at(0), deletion_requested_at=at(100), containers=(pulling,))
    services.record(facts(job, leaving))
    assert rows(job)["cpu"].ended_at is None
    services.record(facts(job, replace(leaving, gone=True, gone_at=at(130))))
    found = rows(job)["cpu"]
    assert (found.ended_at, found.end_source, found.estimated) == (at(130), EndSource.DELETION, False)


def test_a_pod_taken_off_a_silent_node_ends_as_an_estimate(job: Job) -> None:
    """No kubelet has said how its container ended: the cluster only let go of the object."""
    running = ContainerFacts(name="main", state="running", started_at=at(1))
    leaving = pod(scheduled_at=at(0), deletion_requested_at=at(100), containers=(running,))
    services.record(facts(job, leaving))
    assert rows(job)["cpu"].ended_at is None
    services.record(facts(job, replace(leaving, phase="Failed", gone=True, gone_at=at(130))))
    found = rows(job)["cpu"]
    assert (found.ended_at, found.end_source, found.estimated) == (at(130), EndSource.INFERRED, True)


def test_a_deletion_that_nobody_saw_coming_is_an_estimate(job: Job) -> None:
    services.record(facts(job, pod(scheduled_at=at(0), gone=True, gone_at=at(1200))))
    row = rows(job)["cpu"]
    assert (row.ended_at, row.end_source, row.estimated) == (at(1200), EndSource.INFERRED, True)


def test_a_pod_of_a_lost_node_ends_with_the_last_word_on_it(job: Job) -> None:
    lost = pod(
        scheduled_at=at(0),
        phase="Failed",
        containers=(ContainerFacts(name="main", state="running", started_at=at(1)),),
        conditions=(Condition("Ready", False, at=at(500)), Condition("DisruptionTarget", True, at=at(800))),
    )
    services.record(facts(job, lost))
    row = rows(job)["cpu"]
    assert (row.ended_at, row.end_source, row.estimated) == (at(800), EndSource.INFERRED, True)


def test_a_restarted_container_does_not_end_its_pod(job: Job) -> None:
    lives = (ended(at(10)), ContainerFacts(name="main", restart=1, state="running", started_at=at(12)))
    services.record(facts(job, pod(scheduled_at=at(0), containers=lives)))
    assert rows(job)["cpu"].ended_at is None


def test_an_end_before_the_start_is_quarantined_as_zero_seconds(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", logger="portal"):
        services.record(facts(job, pod(scheduled_at=at(0), phase="Failed", containers=(ended(at(-300)),))))
    row = rows(job)["cpu"]
    assert (row.started_at, row.ended_at, row.estimated) == (START, START, True)
    assert "quarantined" in caplog.text


def test_a_better_end_replaces_an_estimate_until_somebody_counts_with_it(job: Job) -> None:
    services.record(facts(job, pod(scheduled_at=at(0), gone=True, gone_at=at(1200))))
    real = facts(job, pod(scheduled_at=at(0), phase="Succeeded", containers=(ended(at(600)),)))
    services.freeze(interval_ids=[rows(job)["cpu"].pk])
    services.record(real)
    assert (rows(job)["cpu"].ended_at, rows(job)["cpu"].estimated) == (at(1200), True)
    assert (rows(job)["memory"].ended_at, rows(job)["memory"].estimated) == (at(600), False)


def test_a_workload_that_is_seen_late_still_names_the_flavor(job: Job) -> None:
    services.record(facts(job, pod(scheduled_at=at(0)), workload=None))
    assert (rows(job)["nvidia.com/gpu"].flavor, rows(job)["nvidia.com/gpu"].gpu_model) == ("", "NVIDIA A100")
    services.record(facts(job, pod(scheduled_at=at(0))))
    assert (rows(job)["nvidia.com/gpu"].flavor, rows(job)["nvidia.com/gpu"].gpu_model) == ("h100", "NVIDIA H100")


@given(order=st.lists(st.integers(0, 4), min_size=1, max_size=8))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_order_and_repetition_of_observations_change_nothing(job: Job, order: list[int]) -> None:
    Interval.objects.all().delete()
    done = (ended(at(900)),)
    story = [
        facts(job, pod(phase="Pending", node="")),
        facts(job, pod(scheduled_at=at(0))),
        facts(job, pod(scheduled_at=at(0), containers=(ContainerFacts(name="main", state="running"),))),
        facts(job, pod(scheduled_at=at(0), phase="Succeeded", containers=done)),
        facts(
            job, pod(scheduled_at=at(0), phase="Succeeded", containers=done, gone=True, gone_at=at(4500)), job_gone=True
        ),
    ]
    for step in [*order, 3]:
        services.record(story[step])
    assert {(r.resource, r.started_at, r.ended_at, r.estimated) for r in rows(job).values()} == {
        (resource, at(0), at(900), False) for resource in ("nvidia.com/gpu", "cpu", "memory")
    }


def test_each_pod_of_a_requeued_job_counts_for_itself(job: Job) -> None:
    first = pod(uid="u-1", scheduled_at=at(0), phase="Failed", containers=(ended(at(60)),))
    second = pod(uid="u-2", scheduled_at=at(18_000), phase="Succeeded", containers=(ended(at(21_600)),))
    services.record(facts(job, first))
    services.record(facts(job, first, second))
    held = [(r.started_at, r.ended_at) for r in selectors.intervals_of(job).filter(resource="cpu")]
    assert held == [(at(0), at(60)), (at(18_000), at(21_600))]


def test_a_pod_that_vanished_with_its_job_ends_when_it_was_last_known(job: Job) -> None:
    services.record(facts(job, pod(scheduled_at=at(0))))
    Interval.objects.update(seen_at=at(300.7))
    services.record(facts(job, job_gone=True, gone_at=at(5000)))
    assert {(r.ended_at, r.end_source, r.estimated) for r in rows(job).values()} == {
        (at(300), EndSource.INFERRED, True)
    }


def test_a_pod_that_vanished_while_nobody_looked_is_closed_after_a_while(job: Job) -> None:
    services.record(facts(job, pod(uid="old", scheduled_at=at(0))))
    services.record(facts(job, pod(uid="new", scheduled_at=at(400))))
    present = {(str(job.pk), 1): {"new"}}
    assert services.reconcile(present=present) == 0
    Interval.objects.filter(pod_uid="old").update(seen_at=at(300))
    assert services.reconcile(present={}) == 0, "an attempt that was not told of is left alone"
    assert services.reconcile(present=present) == 3
    assert {r.ended_at for r in selectors.intervals_of(job).filter(pod_uid="old")} == {at(300)}
    assert {r.ended_at for r in selectors.intervals_of(job).filter(pod_uid="new")} == {None}


def test_case_69_somebody_leaving_changes_no_interval(job: Job, member: User) -> None:
    services.record(facts(job, pod(scheduled_at=at(0))))
    Membership.objects.all().delete()
    member.delete()
    services.record(facts(job, pod(scheduled_at=at(0), phase="Succeeded", containers=(ended(at(900)),))))
    assert {(r.ended_at, r.team_id) for r in rows(job).values()} == {(at(900), job.team_id)}


def test_a_leader_of_the_past_opens_nothing(job: Job) -> None:
    old = leases.take(name="watch:default", holder="old", ttl=timedelta(seconds=30))
    leases.release(name="watch:default", holder="old")
    leases.take(name="watch:default", holder="new", ttl=timedelta(seconds=30))
    with pytest.raises(leases.FencedOff):
        services.record(facts(job, pod(scheduled_at=at(0))), fence=old)
    assert rows(job) == {}


def test_facts_about_an_unknown_job_are_passed_over(job: Job) -> None:
    services.record(facts(job, pod(scheduled_at=at(0)), job_id="00000000-0000-4000-8000-000000000000"))
    assert not Interval.objects.exists()


def test_what_is_counted_with_is_closed_and_counted_once(job: Job) -> None:
    services.record(facts(job, pod(scheduled_at=at(0))))
    keys = [row.pk for row in rows(job).values()]
    assert not services.freeze(interval_ids=keys)
    services.record(facts(job, pod(scheduled_at=at(0), phase="Succeeded", containers=(ended(at(9)),))))
    assert services.freeze(interval_ids=keys)
    assert not services.freeze(interval_ids=keys)
