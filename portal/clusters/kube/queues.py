"""Kueue's ClusterQueues and ResourceFlavors, turned into a `QueueSnapshot`."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from portal.clusters.kube.facts import Object, metadata
from portal.clusters.kube.values import amount, items, mapping, number, text
from portal.clusters.specs import FlavorQuota, FlavorSpec, QueueSnapshot, QueueSpec

# Labels of NVIDIA's GPU feature discovery; the product has dashes for spaces, memory is in MiB.
PRODUCT_LABEL = "nvidia.com/gpu.product"
MEMORY_LABEL = "nvidia.com/gpu.memory"


def snapshot(cluster_queues: Iterable[Object], flavors: Iterable[Object]) -> QueueSnapshot:
    return QueueSnapshot(
        flavors=tuple(sorted(map(flavor_spec, flavors), key=lambda flavor: flavor.name)),
        queues=tuple(sorted(map(queue_spec, cluster_queues), key=lambda queue: queue.name)),
    )


def flavor_spec(thing: Object) -> FlavorSpec:
    node_labels = {key: text(value) for key, value in mapping(_spec(thing).get("nodeLabels")).items()}
    memory = number(node_labels.get(MEMORY_LABEL, ""))
    return FlavorSpec(
        name=text(metadata(thing).get("name")),
        node_labels=tuple(sorted(node_labels.items())),
        gpu_model=node_labels.get(PRODUCT_LABEL, "").replace("-", " "),
        gpu_memory_gib=round(memory / 1024) if memory else None,
    )


def queue_spec(thing: Object) -> QueueSpec:
    spec = _spec(thing)
    return QueueSpec(
        name=text(metadata(thing).get("name")),
        quotas=tuple(_quotas(spec)),
        cohort=text(spec.get("cohortName")),
        stopped=text(spec.get("stopPolicy")) not in {"", "None"},
    )


def _quotas(spec: Mapping[str, Any]) -> Iterator[FlavorQuota]:
    for group in items(spec.get("resourceGroups")):
        for flavor in items(group.get("flavors")):
            for resource in items(flavor.get("resources")):
                name = text(resource.get("name"))
                yield FlavorQuota(
                    flavor=text(flavor.get("name")),
                    resource=name,
                    nominal=amount(name, resource.get("nominalQuota")) or Decimal(0),
                    borrowing_limit=amount(name, resource.get("borrowingLimit")),
                )


def _spec(thing: Object) -> Mapping[str, Any]:
    return mapping(thing.get("spec"))
