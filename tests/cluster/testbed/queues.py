"""The flavors and queues that the tests share.

| ClusterQueue | flavor | nodes | nominal quota |
|---|---|---|---|
| `gpu` | `gpu-a` | label `beamtime.test/node-kind=gpu` (the real node) | 4 `nvidia.com/gpu` (of 8), 8 CPU, 16Gi |
| `cpu` | `cpu` | label `beamtime.test/cpu=true` (the real node) | 8 CPU, 16Gi |
| `kwok` (see `apply_kwok`) | `kwok` | pretended nodes, whose taint the flavor tolerates | as asked for |

The GPU quota is smaller than the node on purpose: a fifth GPU waits because of Kueue, not because of the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from . import nodes

API = "kueue.x-k8s.io/v1beta2"
GPU_QUOTA = {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "4"}
CPU_QUOTA = {"cpu": "8", "memory": "16Gi"}


class Applies(Protocol):
    """A Cluster, or anything else that can apply objects."""

    def apply(self, *objects: dict[str, Any]) -> None: ...


def apply(cluster: Applies) -> None:
    """Both flavors and both ClusterQueues, set back to the numbers above if a test has changed them."""
    cluster.apply(
        _flavor("gpu-a", {"beamtime.test/node-kind": "gpu"}),
        _flavor("cpu", {"beamtime.test/cpu": "true"}),
        _cluster_queue("gpu", "gpu-a", GPU_QUOTA),
        _cluster_queue("cpu", "cpu", CPU_QUOTA),
    )


def apply_kwok(cluster: Applies, *, gpus: int, cpus: int = 100_000) -> None:
    """Flavor and ClusterQueue `kwok` for load tests on pretended nodes."""
    flavor = _flavor("kwok", nodes.KWOK_LABELS)
    flavor["spec"]["tolerations"] = [{**nodes.KWOK_TAINT, "operator": "Equal"}]
    quota = {"cpu": str(cpus), "memory": "1000Ti", "nvidia.com/gpu": str(gpus)}
    cluster.apply(flavor, _cluster_queue("kwok", "kwok", quota))


def local_queue(cluster: Applies, *, namespace: str, name: str, cluster_queue: str) -> None:
    """A LocalQueue in a namespace that exists."""
    metadata = {"name": name, "namespace": namespace}
    cluster.apply(
        {"apiVersion": API, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": cluster_queue}}
    )


def _flavor(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "ResourceFlavor",
        "metadata": {"name": name},
        "spec": {"nodeLabels": dict(labels)},
    }


def _cluster_queue(name: str, flavor: str, quota: Mapping[str, str]) -> dict[str, Any]:
    resources = [{"name": resource, "nominalQuota": amount} for resource, amount in quota.items()]
    group = {"coveredResources": list(quota), "flavors": [{"name": flavor, "resources": resources}]}
    spec = {"namespaceSelector": {}, "resourceGroups": [group]}
    return {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}
