"""Rows and cluster in step: on this machine the rows are the truth, in Kubernetes the objects are."""

from decimal import Decimal

import pytest

from portal.clusters.models import BackendKind, Cluster, ResourceFlavor
from portal.clusters.specs import FlavorQuota as QuotaSpec
from portal.clusters.specs import FlavorSpec, PassingError, QueueSnapshot, QueueSpec
from portal.quotas import selectors, tasks
from portal.quotas.models import ClusterQueue, FlavorQuota
from portal.quotas.services import mirror, publish, synchronise
from portal.teams.models import Team
from tests import factories
from tests.jobs.cluster import ClusterDouble

H100 = FlavorSpec("h100", (("gpu", "h100"),))
GPU = QueueSpec("gpu", (QuotaSpec("h100", "nvidia.com/gpu", Decimal(8), Decimal(4)),), cohort="campus")


@pytest.fixture
def kube(db: None, cluster: ClusterDouble) -> Cluster:
    cluster.snapshot = QueueSnapshot(flavors=(H100,), queues=(GPU,))
    return Cluster.objects.create(name="default", backend=BackendKind.KUBE)


def test_rows_of_this_machine_are_published(cluster: ClusterDouble, site: factories.Site) -> None:
    publish(site.cluster)
    assert [flavor.name for flavor in cluster.snapshot.flavors] == ["cpu", "h100"]
    gpu = next(queue for queue in cluster.snapshot.queues if queue.name == "gpu")
    assert QuotaSpec("h100", "nvidia.com/gpu", Decimal(4)) in gpu.quotas
    assert cluster.snapshot.flavors[1].pretended


def test_queues_of_kubernetes_are_mirrored(kube: Cluster) -> None:
    mirror(kube)
    queue = ClusterQueue.objects.get()
    assert (queue.name, queue.cohort, queue.observed_at is not None) == ("gpu", "campus", True)
    quota = FlavorQuota.objects.get()
    assert (quota.nominal, quota.borrowing_limit) == (Decimal(8), Decimal(4))
    assert quota.flavor.node_labels == {"gpu": "h100"}


def test_mirroring_again_follows_what_changed_and_keeps_what_vanished(kube: Cluster, cluster: ClusterDouble) -> None:
    mirror(kube)
    night = QueueSpec("night", (QuotaSpec("h100", "cpu", Decimal("0.5")),), stopped=True)
    cluster.snapshot = QueueSnapshot(flavors=(H100,), queues=(night,))
    mirror(kube)
    gpu, found = ClusterQueue.objects.get(name="gpu"), ClusterQueue.objects.get(name="night")
    assert (gpu.removed_at is not None, found.stopped) == (True, True)
    assert found.quotas.get().nominal == Decimal("0.5")
    cluster.snapshot = QueueSnapshot(flavors=(), queues=(GPU,))
    mirror(kube)
    gpu.refresh_from_db()
    assert gpu.removed_at is None, "it came back"
    assert gpu.quotas.count() == 0, "its flavor did not"
    assert ResourceFlavor.objects.get().removed_at is not None


def test_what_an_administrator_entered_about_a_flavor_stays(kube: Cluster, cluster: ClusterDouble) -> None:
    mirror(kube)
    ResourceFlavor.objects.update(gpu_model="NVIDIA H100", gpu_memory_gib=80)
    mirror(kube)
    flavor = ResourceFlavor.objects.get()
    assert (flavor.gpu_model, flavor.gpu_memory_gib) == ("NVIDIA H100", 80)


def test_gpus_of_another_make_are_found_by_their_resource(kube: Cluster, cluster: ClusterDouble, team: Team) -> None:
    mi300 = FlavorSpec("mi300", gpu_model="AMD MI300X")
    quotas = (QuotaSpec("mi300", "amd.com/gpu", Decimal(8)), QuotaSpec("mi300", "cpu", Decimal(64)))
    cluster.snapshot = QueueSnapshot(flavors=(mi300,), queues=(QueueSpec("amd", quotas),))
    mirror(kube)
    (row,) = selectors.book_of(team).gpu_flavors(ClusterQueue.objects.get(name="amd"))
    assert (row.gpu_resource, row.nominal) == ("amd.com/gpu", Decimal(8))


def test_a_cluster_that_does_not_answer_changes_nothing(
    kube: Cluster, cluster: ClusterDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror(kube)

    def down() -> QueueSnapshot:
        raise PassingError("no route to host")

    monkeypatch.setattr(cluster, "read_queues", down)
    with pytest.raises(PassingError):
        mirror(kube)
    tasks.synchronise()
    assert ClusterQueue.objects.get().removed_at is None


def test_the_direction_follows_the_backend(cluster: ClusterDouble, site: factories.Site) -> None:
    synchronise(site.cluster)
    assert cluster.calls == ["write_queues"]
    site.cluster.backend = BackendKind.KUBE
    synchronise(site.cluster)
    assert cluster.calls == ["write_queues"], "nothing is ever written to a cluster that is not ours to write to"


def test_the_task_works_before_there_is_a_cluster(db: None) -> None:
    tasks.synchronise()
