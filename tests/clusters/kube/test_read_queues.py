"""ClusterQueues and ResourceFlavors as an administrator wrote them in Kueue. Against a FAKE API server."""

from decimal import Decimal
from typing import Any

import pytest

from portal.clusters.kube import writes
from portal.clusters.kube.backend import KubeBackend
from portal.clusters.specs import FlavorQuota, FlavorSpec, PassingError, QueueSpec
from tests.clusters.kube.fake import FakeApi, status


def put(api: FakeApi, plural: str, name: str, spec: Any) -> None:
    api.put(plural, {"metadata": {"name": name, "namespace": ""}, "spec": spec})


def test_quotas_come_in_cores_gib_and_pieces(api: FakeApi, backend: KubeBackend) -> None:
    resources = [
        {"name": "cpu", "nominalQuota": "31500m"},
        {"name": "memory", "nominalQuota": "1Ti", "borrowingLimit": "512Gi"},
        {"name": "nvidia.com/gpu", "nominalQuota": 8, "borrowingLimit": "0"},
    ]
    group = {
        "coveredResources": ["cpu", "memory", "nvidia.com/gpu"],
        "flavors": [{"name": "h100", "resources": resources}],
    }
    put(api, "clusterqueues", "gpu", {"resourceGroups": [group], "cohortName": "all", "stopPolicy": "None"})

    [queue] = backend.read_queues().queues

    assert queue == QueueSpec(
        name="gpu",
        cohort="all",
        quotas=(
            FlavorQuota("h100", "cpu", Decimal("31.5")),
            FlavorQuota("h100", "memory", Decimal(1024), Decimal(512)),
            FlavorQuota("h100", "nvidia.com/gpu", Decimal(8), Decimal(0)),
        ),
    )


@pytest.mark.parametrize(
    ("policy", "stopped"), [(None, False), ("None", False), ("Hold", True), ("HoldAndDrain", True)]
)
def test_a_stopped_queue_is_seen(api: FakeApi, backend: KubeBackend, policy: str | None, stopped: bool) -> None:
    put(api, "clusterqueues", "gpu", {"stopPolicy": policy})
    assert backend.read_queues().queues[0].stopped is stopped


def test_a_flavor_is_called_what_its_nodes_say(api: FakeApi, backend: KubeBackend) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
    put(api, "resourceflavors", "h100", {"nodeLabels": labels})
    put(api, "resourceflavors", "cpu", {})
    assert backend.read_queues().flavors == (
        FlavorSpec("cpu"),
        FlavorSpec("h100", tuple(sorted(labels.items())), "NVIDIA H100 80GB HBM3", 80),
    )


def test_all_pages_are_read(api: FakeApi, backend: KubeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "PAGE", "2")
    for number in range(5):
        put(api, "clusterqueues", f"queue-{number}", {})
    assert len(backend.read_queues().queues) == 5


@pytest.mark.parametrize(
    "spec",
    [None, {}, {"resourceGroups": None}, {"resourceGroups": [None, {"flavors": [{"name": None, "resources": [{}]}]}]}],
)
def test_case_63_what_a_queue_does_not_say_is_not_missed(api: FakeApi, backend: KubeBackend, spec: Any) -> None:
    put(api, "clusterqueues", "odd", spec)
    put(api, "resourceflavors", "odd", {"nodeLabels": {"a": None}} if spec else None)
    assert backend.read_queues().queues[0].name == "odd"


def test_a_cluster_without_kueue_is_said_to_be_one(api: FakeApi, backend: KubeBackend) -> None:
    api.hook = lambda request: status(404, "NotFound")
    with pytest.raises(PassingError, match="Kueue"):
        backend.read_queues()
