"""An administrator says what the hardware is called; Kueue's own fields stay Kueue's."""

import pytest
from django.test import Client

from portal.audit.models import Entry
from portal.clusters.models import BackendKind, Cluster, ResourceFlavor
from portal.teams.models import User
from tests.factories import Site

FLAVORS = "/admin/clusters/resourceflavor/"


@pytest.fixture
def admin(admin_user: User, client: Client) -> Client:
    client.force_login(admin_user)
    return client


def flavor_form(flavor: ResourceFlavor | None = None, **changes: str) -> dict[str, str]:
    fields = {"gpu_model": "", "gpu_memory_gib": "", "gpu_resource": "nvidia.com/gpu", "node_labels": "{}"}
    if flavor is None:
        fields |= {"name": "a100", "cluster": str(Cluster.objects.get().pk)}
    return fields | changes


def test_a_new_flavor_of_this_machine(admin: Client, site: Site) -> None:
    answer = admin.post(f"{FLAVORS}add/", flavor_form(gpu_model="NVIDIA A100", node_labels='{"zone": "a"}'))
    assert answer.status_code == 302
    made = ResourceFlavor.objects.get(name="a100")
    assert (made.gpu_model, made.node_labels) == ("NVIDIA A100", {"zone": "a"})
    assert Entry.objects.get(action="flavor.add").after["gpu_model"] == "NVIDIA A100"


def test_a_renamed_model_is_in_the_audit_with_both_names(admin: Client, site: Site) -> None:
    flavor = site.gpu_flavor
    answer = admin.post(f"{FLAVORS}{flavor.pk}/change/", flavor_form(flavor, gpu_model="NVIDIA H100 NVL"))
    assert answer.status_code == 302
    entry = Entry.objects.get(action="flavor.change")
    assert (entry.before["gpu_model"], entry.after["gpu_model"]) == ("NVIDIA H100", "NVIDIA H100 NVL")


def test_nothing_changed_is_nothing_in_the_audit(admin: Client, site: Site) -> None:
    flavor = site.gpu_flavor
    fields = flavor_form(flavor, gpu_model="NVIDIA H100", gpu_memory_gib="80", pretended="on")
    assert admin.post(f"{FLAVORS}{flavor.pk}/change/", fields).status_code == 302
    assert not Entry.objects.exists()


@pytest.mark.parametrize("labels", ["[1]", '{"a": 1}', "{", '"text"'])
def test_labels_that_are_none_are_refused(admin: Client, site: Site, labels: str) -> None:
    answer = admin.post(f"{FLAVORS}add/", flavor_form(node_labels=labels))
    assert answer.status_code == 200
    assert not ResourceFlavor.objects.filter(name="a100").exists()


def test_of_a_flavor_in_kubernetes_only_the_models_name_can_be_filled_in(admin: Client, site: Site) -> None:
    kube = Cluster.objects.create(name="kube", backend=BackendKind.KUBE)
    flavor = ResourceFlavor.objects.create(cluster=kube, name="h200", node_labels={"gpu": "h200"})
    fields = {"name": "other", "gpu_model": "NVIDIA H200", "gpu_memory_gib": "141", "node_labels": "{}"}
    assert admin.post(f"{FLAVORS}{flavor.pk}/change/", fields).status_code == 302
    flavor.refresh_from_db()
    assert (flavor.name, flavor.node_labels) == ("h200", {"gpu": "h200"})
    assert (flavor.gpu_model, flavor.gpu_memory_gib) == ("NVIDIA H200", 141)


@pytest.mark.parametrize("page", ["cluster/", "cluster/1/change/", "resourceflavor/", "resourceflavor/add/"])
def test_every_page_opens(admin: Client, site: Site, page: str) -> None:
    page = page.replace("/1/", f"/{site.cluster.pk}/")
    assert admin.get(f"/admin/clusters/{page}").status_code == 200


@pytest.mark.parametrize("page", ["cluster/add/", "cluster/1/delete/", "resourceflavor/1/delete/"])
def test_clusters_come_from_the_settings_and_nothing_is_deleted(admin: Client, site: Site, page: str) -> None:
    pk = site.cluster.pk if page.startswith("cluster") else site.gpu_flavor.pk
    assert admin.get(f"/admin/clusters/{page.replace('/1/', f'/{pk}/')}").status_code == 403
