"""Queues in the admin: those of this machine are edited, those of Kubernetes are looked at."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from portal.audit.models import Entry
from portal.clusters.models import BackendKind, Cluster
from portal.quotas.models import ClusterQueue, FlavorQuota, LocalQueue
from portal.teams.models import Team, User
from tests import factories
from tests.jobs.cluster import ClusterDouble


@pytest.fixture
def desk(client: Client, admin_user: User, cluster: ClusterDouble) -> Client:
    client.force_login(admin_user)
    return client


def _form(queue: ClusterQueue, **fields: Any) -> dict[str, Any]:
    rows = list(queue.quotas.order_by("pk"))
    form: dict[str, Any] = {
        "cohort": queue.cohort, "open_to_all": "on", "quotas-TOTAL_FORMS": len(rows), "quotas-INITIAL_FORMS": len(rows),
    }  # fmt: skip
    for number, row in enumerate(rows):
        form |= {
            f"quotas-{number}-id": row.pk, f"quotas-{number}-cluster_queue": queue.pk,
            f"quotas-{number}-flavor": row.flavor_id, f"quotas-{number}-resource": row.resource,
            f"quotas-{number}-nominal": row.nominal, f"quotas-{number}-borrowing_limit": "",
        }  # fmt: skip
    return form | fields


def _url(queue: ClusterQueue) -> str:
    return f"/admin/quotas/clusterqueue/{queue.pk}/change/"


def test_saving_a_queue_of_this_machine_publishes_it_and_writes_it_down(
    desk: Client, site: factories.Site, cluster: ClusterDouble, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        answer = desk.post(_url(site.gpu), _form(site.gpu, **{"quotas-0-nominal": "6"}))
    assert answer.status_code == 302
    published = next(queue for queue in cluster.snapshot.queues if queue.name == "gpu")
    assert {quota.nominal for quota in published.quotas} >= {Decimal(6)}
    entry = Entry.objects.get(action="queue.change")
    resource = FlavorQuota.objects.filter(cluster_queue=site.gpu).order_by("pk")[0].resource
    assert (entry.before["quotas"][f"h100 {resource}"], entry.after["quotas"][f"h100 {resource}"]) == (
        ["4", None], ["6", None],
    )  # fmt: skip


def test_saving_without_a_change_writes_nothing_down(desk: Client, site: factories.Site) -> None:
    desk.post(_url(site.gpu), _form(site.gpu))
    assert not Entry.objects.exists()


def test_a_quota_below_zero_is_refused(desk: Client, site: factories.Site) -> None:
    answer = desk.post(_url(site.gpu), _form(site.gpu, **{"quotas-0-nominal": "-1"}))
    assert "A quota cannot be below 0." in answer.content.decode()


def test_a_new_queue_is_made_for_this_machine(desk: Client, site: factories.Site) -> None:
    form = {"cluster": site.cluster.pk, "name": "night", "open_to_all": "on"}
    form |= {"quotas-TOTAL_FORMS": 0, "quotas-INITIAL_FORMS": 0}
    assert desk.post("/admin/quotas/clusterqueue/add/", form).status_code == 302
    assert Entry.objects.get().action == "queue.add"


def test_removing_keeps_the_row_for_its_jobs(desk: Client, site: factories.Site) -> None:
    form = {"action": "remove", "_selected_action": [site.gpu.pk]}
    desk.post("/admin/quotas/clusterqueue/", form)
    site.gpu.refresh_from_db()
    assert site.gpu.removed_at is not None
    assert desk.post(f"/admin/quotas/clusterqueue/{site.gpu.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.fixture
def mirrored(site: factories.Site) -> ClusterQueue:
    Cluster.objects.update(backend=BackendKind.KUBE)
    return ClusterQueue.objects.get(name="gpu")


def test_a_queue_of_kubernetes_is_only_shown_but_for_its_teams(
    desk: Client, mirrored: ClusterQueue, cluster: ClusterDouble, team: Team,
    django_capture_on_commit_callbacks: Any,
) -> None:  # fmt: skip
    page = desk.get(_url(mirrored)).content.decode()
    assert 'name="cohort"' not in page
    assert 'name="quotas-0-nominal"' not in page
    with django_capture_on_commit_callbacks(execute=True):
        form = _form(mirrored, **{"cohort": "other", "teams": [team.pk], "quotas-0-nominal": "99"})
        del form["open_to_all"]
        desk.post(_url(mirrored), form)
    mirrored.refresh_from_db()
    assert (mirrored.cohort, mirrored.open_to_all, list(mirrored.teams.all())) == ("", False, [team])
    assert not FlavorQuota.objects.filter(nominal=99).exists()
    assert "write_queues" not in cluster.calls


def test_a_queue_of_kubernetes_is_not_removed_here(desk: Client, mirrored: ClusterQueue) -> None:
    form = {"action": "remove", "_selected_action": [mirrored.pk]}
    answer = desk.post("/admin/quotas/clusterqueue/", form, follow=True)
    assert "Kueue&#x27;s" in answer.content.decode()
    mirrored.refresh_from_db()
    assert mirrored.removed_at is None


def test_local_queues_are_shown(desk: Client, site: factories.Site, team: Team) -> None:
    LocalQueue.objects.create(team=team, cluster_queue=site.gpu)
    assert "vision" in desk.get("/admin/quotas/localqueue/").content.decode().lower()
    assert desk.get("/admin/quotas/localqueue/add/").status_code == 403
