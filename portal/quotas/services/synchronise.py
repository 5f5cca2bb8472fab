"""Rows and cluster in step: in a `local` cluster the rows are the truth, in Kubernetes the objects are."""

import logging
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import transaction

from portal.clusters.gateway import backend_of
from portal.clusters.models import BackendKind, Cluster, ResourceFlavor
from portal.clusters.specs import ClusterError, FlavorSpec, QueueSnapshot, QueueSpec
from portal.clusters.specs import FlavorQuota as QuotaSpec
from portal.core.clock import now
from portal.quotas.models import ClusterQueue, FlavorQuota

logger = logging.getLogger(__name__)

_THOUSANDTH = Decimal("0.001")


def synchronise(cluster: Cluster) -> None:
    """Bring a cluster and its rows in step, in the direction that its backend has. Raises `ClusterError`."""
    if cluster.backend == BackendKind.LOCAL:
        publish(cluster)
    else:
        mirror(cluster)


def synchronise_own() -> None:
    """The same for this portal's own cluster; trouble is logged, because the next minute tries again."""
    cluster = Cluster.objects.filter(name=settings.BEAMTIME_CLUSTER_NAME).first()
    if cluster is None:
        return
    try:
        synchronise(cluster)
    except ClusterError as error:
        logger.warning("queues of cluster %s were not brought in step: %s", cluster.name, error)


def publish(cluster: Cluster) -> None:
    """Give the cluster its queues as the rows say. Speaks to the cluster. Raises `PassingError`, `PermanentError`."""
    flavors = ResourceFlavor.objects.filter(cluster=cluster, removed_at=None).order_by("name")
    queues = ClusterQueue.objects.filter(cluster=cluster, removed_at=None).prefetch_related("quotas__flavor")
    snapshot = QueueSnapshot(
        flavors=tuple(_flavor_spec(flavor) for flavor in flavors),
        queues=tuple(_queue_spec(queue) for queue in queues.order_by("name")),
    )
    backend_of(cluster).write_queues(snapshot)


def mirror(cluster: Cluster) -> None:
    """Copy the cluster's queues and flavors into rows; what vanished is marked removed, never deleted.

    Speaks to the cluster first, then writes in one transaction. Raises `PassingError`, `PermanentError`.
    """
    snapshot = backend_of(cluster).read_queues()
    with transaction.atomic():
        gpus = _gpu_resources(snapshot)
        flavors = {spec.name: _keep_flavor(cluster, spec, gpus.get(spec.name)) for spec in snapshot.flavors}
        gone = ResourceFlavor.objects.filter(cluster=cluster, removed_at=None).exclude(name__in=flavors)
        gone.update(removed_at=now())
        for spec in snapshot.queues:
            _keep_queue(cluster, spec, flavors)
        names = [spec.name for spec in snapshot.queues]
        vanished = ClusterQueue.objects.filter(cluster=cluster, removed_at=None).exclude(name__in=names)
        vanished.update(removed_at=now())


def _gpu_resources(snapshot: QueueSnapshot) -> dict[str, str]:
    """The extended resource by which each flavor counts its GPUs, such as "amd.com/gpu", where a queue has one."""
    return {
        quota.flavor: quota.resource
        for queue in snapshot.queues
        for quota in queue.quotas
        if "/" in quota.resource and quota.resource.endswith("gpu")
    }


def _keep_flavor(cluster: Cluster, spec: FlavorSpec, gpu_resource: str | None) -> ResourceFlavor:
    seen: dict[str, Any] = {"node_labels": dict(spec.node_labels), "removed_at": None, "pretended": spec.pretended}
    # Kueue knows no GPU models; what the cluster does not tell, an administrator may have entered here.
    if spec.gpu_model:
        seen["gpu_model"] = spec.gpu_model
    if spec.gpu_memory_gib is not None:
        seen["gpu_memory_gib"] = spec.gpu_memory_gib
    if gpu_resource is not None:
        seen["gpu_resource"] = gpu_resource
    flavor, _ = ResourceFlavor.objects.update_or_create(cluster=cluster, name=spec.name, defaults=seen)
    return flavor


def _keep_queue(cluster: Cluster, spec: QueueSpec, flavors: dict[str, ResourceFlavor]) -> None:
    queue, _ = ClusterQueue.objects.update_or_create(
        cluster=cluster,
        name=spec.name,
        defaults={"cohort": spec.cohort, "stopped": spec.stopped, "removed_at": None, "observed_at": now()},
    )
    kept = []
    for quota in spec.quotas:
        flavor = flavors.get(quota.flavor)
        if flavor is None:
            # The queue names a flavor that does not exist: nothing can be admitted to it, so there is nothing to keep.
            continue
        limit = None if quota.borrowing_limit is None else quota.borrowing_limit.quantize(_THOUSANDTH)
        row, _ = FlavorQuota.objects.update_or_create(
            cluster_queue=queue,
            flavor=flavor,
            resource=quota.resource,
            defaults={"nominal": quota.nominal.quantize(_THOUSANDTH), "borrowing_limit": limit},
        )
        kept.append(row.pk)
    queue.quotas.exclude(pk__in=kept).delete()


def _flavor_spec(flavor: ResourceFlavor) -> FlavorSpec:
    return FlavorSpec(
        name=flavor.name,
        node_labels=tuple(sorted(flavor.node_labels.items())),
        gpu_model=flavor.gpu_model,
        gpu_memory_gib=flavor.gpu_memory_gib,
        pretended=flavor.pretended,
    )


def _queue_spec(queue: ClusterQueue) -> QueueSpec:
    return QueueSpec(
        name=queue.name,
        quotas=tuple(
            QuotaSpec(quota.flavor.name, quota.resource, quota.nominal, quota.borrowing_limit)
            for quota in queue.quotas.all()
        ),
        cohort=queue.cohort,
        stopped=queue.stopped,
    )
