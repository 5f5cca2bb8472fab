"""What each ClusterQueue has, holds and is waited for."""

from decimal import Decimal
from typing import Any

import pytest

from portal.clusters.specs import WorkSpec
from portal.core.clock import now
from portal.jobs.models import Job, State
from portal.jobs.selectors import admitted, free_by_model, held_by
from portal.quotas.models import ClusterQueue, FlavorQuota
from portal.quotas.selectors import rows_now
from portal.teams.models import Team, User
from tests.factories import Site, make_job
from tests.web.pages import as_person, elements, html, queries, words

ADDRESS = "/queues/"


def running(team: Team, user: User, queue: ClusterQueue, *, gpus: int = 1, flavor: str = "h100", **work: int) -> Job:
    """A job that the queue has let in."""
    spec = WorkSpec(image="i", command=("x",), gpus=gpus, **work)  # type: ignore[arg-type]
    job = make_job(team, user, queue, state=State.RUNNING, work=spec, started_at=now(), name=f"{team.slug} runs")
    job.attempts.update(admitted_at=now(), started_at=now(), flavor=flavor)
    return job


def waiting(team: Team, user: User, queue: ClusterQueue, *, gpus: int = 1, flavor: str = "") -> Job:
    spec = WorkSpec(image="i", command=("x",), gpus=gpus, flavor=flavor)
    return make_job(team, user, queue, state=State.QUEUED, work=spec, name=f"{team.slug} waits")


def numbers(queue: ClusterQueue, resource: str = "nvidia.com/gpu") -> Any:
    rows = rows_now(held_by(admitted()))
    return next(row for row in rows if row.queue.pk == queue.pk and row.resource == resource)


def test_granted_running_free_and_waiting(site: Site, team: Team, member: User) -> None:
    running(team, member, site.gpu, gpus=3)
    waiting(team, member, site.gpu, gpus=2)
    said = words(as_person(member).get(ADDRESS))
    assert "H100 80 GiB 1 of 4 free 2 waited for pretended" in said
    assert "gpu every team 4 3 0 1 2 1 job" in said
    assert "vision runs gpu 3" in said
    assert "vision waits gpu 2" in said


def test_jobs_of_other_teams_show_size_and_times_only(
    site: Site, team: Team, other_team: Team, member: User, outsider: User
) -> None:
    running(team, member, site.gpu)
    waiting(team, member, site.gpu)
    page = as_person(outsider).get(ADDRESS)
    assert "A job of Vision" in words(page)
    assert "vision runs" not in html(page)
    assert "vision waits" not in html(page)


def test_the_number_that_waits_is_the_number_of_rows(site: Site, team: Team, member: User) -> None:
    for _ in range(3):
        waiting(team, member, site.gpu, gpus=4)
    said = words(as_person(member).get(ADDRESS))
    assert "12 3 jobs" in said
    assert said.count("vision waits") == 3


def test_a_flavor_is_chosen_by_address(site: Site, team: Team, member: User) -> None:
    page = as_person(member).get(ADDRESS, {"flavor": "cpu"})
    assert "in cores" in words(page)
    assert "cpu every team 8 0 0 8 0" in words(page)
    assert as_person(member).get(ADDRESS, {"flavor": "nothing"}).status_code == 200


def test_without_queues_it_says_where_they_come_from(db: None, team: Team, member: User) -> None:
    assert "No queue is set up yet" in words(as_person(member).get(ADDRESS))


def test_a_quota_of_zero_breaks_nothing(site: Site, team: Team, member: User) -> None:
    FlavorQuota.objects.update(nominal=0)
    running(team, member, site.gpu, gpus=2)
    said = words(as_person(member).get(ADDRESS))
    assert "gpu every team 0 2 2 0 0" in said
    assert as_person(member).get("/teams/vision/").status_code == 200


def test_an_administrator_gets_the_way_to_edit(site: Site, team: Team, admin_user: User, member: User) -> None:
    assert "/admin/quotas/clusterqueue/" in [a.get("href") for a in elements(as_person(admin_user).get(ADDRESS), "a")]
    assert "Edit in the admin" not in words(as_person(member).get(ADDRESS))


@pytest.mark.parametrize("many", [12])
def test_the_number_of_queries_does_not_grow(many: int, site: Site, team: Team, member: User) -> None:
    client = as_person(member)
    running(team, member, site.gpu)
    waiting(team, member, site.gpu)
    first = len(queries(lambda: client.get(ADDRESS)))
    for _ in range(many):
        running(team, member, site.gpu)
        waiting(team, member, site.gpu)
    assert len(queries(lambda: client.get(ADDRESS))) == first
    assert first <= 16


# --- the numbers -------------------------------------------------------------------------------------------------


def test_an_array_holds_what_runs_at_once(site: Site, team: Team, member: User) -> None:
    running(team, member, site.gpu, gpus=1, runs=20, parallelism=3)
    assert numbers(site.gpu).held == 3


def test_cores_and_memory_are_held_too(site: Site, team: Team, member: User) -> None:
    running(team, member, site.gpu, cpu_millicores=1500, memory_mib=2048)
    assert numbers(site.gpu, "cpu").held == Decimal("1.5")
    assert numbers(site.gpu, "memory").held == 2


def test_what_has_ended_holds_nothing(site: Site, team: Team, member: User) -> None:
    job = running(team, member, site.gpu, gpus=4)
    job.attempts.update(state=State.SUCCEEDED, ended_at=now())
    assert numbers(site.gpu).free == 4


def test_what_is_being_cancelled_holds_until_it_is_gone(site: Site, team: Team, member: User) -> None:
    job = running(team, member, site.gpu, gpus=3)
    Job.objects.filter(pk=job.pk).update(state=State.CANCELLING)
    job.attempts.update(state=State.CANCELLING, due_at=now())
    assert numbers(site.gpu).free == 1


def test_a_stopped_queue_gives_nothing(site: Site, team: Team) -> None:
    ClusterQueue.objects.filter(pk=site.gpu.pk).update(stopped=True)
    assert numbers(site.gpu).free == 0


def test_a_cohort_lends_what_is_idle_up_to_the_limit(site: Site, team: Team, member: User) -> None:
    ClusterQueue.objects.filter(pk=site.gpu.pk).update(cohort="campus")
    lab = ClusterQueue.objects.create(cluster=site.cluster, name="lab", cohort="campus")
    FlavorQuota.objects.create(
        cluster_queue=lab, flavor=site.gpu_flavor, resource="nvidia.com/gpu", nominal=2, borrowing_limit=3
    )
    assert (numbers(lab).free, numbers(lab).most) == (5, 5)
    assert (numbers(site.gpu).free, numbers(site.gpu).most) == (6, 6)
    running(team, member, site.gpu, gpus=4)
    assert numbers(lab).free == 2
    running(team, member, site.gpu, gpus=2)
    assert (numbers(lab).free, numbers(site.gpu).borrowed) == (0, 2)
    # Both queues share what is free; it is not there twice.
    assert [(room.free, room.total) for room in free_by_model(team)] == [(0, 6)]


def test_a_queue_of_another_team_is_not_ones_own(site: Site, team: Team, other_team: Team) -> None:
    ClusterQueue.objects.filter(pk=site.gpu.pk).update(open_to_all=False)
    site.gpu.teams.add(other_team)
    assert free_by_model(team) == []
    assert [room.free for room in free_by_model(other_team)] == [4]
