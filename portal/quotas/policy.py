"""How much a queue can give. Pure; the numbers come loaded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from portal.clusters.models import ResourceFlavor
from portal.quotas.models import ClusterQueue
from portal.quotas.specs import FlavorRow, Quota


def largest(quotas: Sequence[Quota], *, cluster_queue: str, resource: str, flavor: str = "") -> Decimal | None:
    """The most of a resource that one job can ever get from a queue; None if the queue does not cover the resource.

    In each flavor: the nominal quota and what may be borrowed. Without a cohort nothing can be borrowed; with one, up
    to the borrowing limit, and never more than the other queues of the cohort have
    (https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#borrowinglimit). A job takes a resource from one flavor,
    so without a named flavor the answer is the best single one.
    """
    own = [
        quota
        for quota in quotas
        if quota.cluster_queue == cluster_queue and quota.resource == resource and flavor in ("", quota.flavor)
    ]
    return max((quota.nominal + _borrowable(quota, quotas) for quota in own), default=None)


def _borrowable(quota: Quota, quotas: Iterable[Quota]) -> Decimal:
    if not quota.cohort:
        return Decimal(0)
    others = sum(
        (
            other.nominal
            for other in quotas
            if other.cohort == quota.cohort
            and other.cluster_queue != quota.cluster_queue
            and (other.flavor, other.resource) == (quota.flavor, quota.resource)
        ),
        Decimal(0),
    )
    return others if quota.borrowing_limit is None else min(quota.borrowing_limit, others)


@dataclass(frozen=True, slots=True)
class QueueBook:
    """The queues open to a team with the numbers of the whole cluster, which borrowing needs. Asks nothing further."""

    queues: tuple[ClusterQueue, ...]
    quotas: tuple[Quota, ...]
    flavors: dict[str, ResourceFlavor]

    def queue(self, name: str) -> ClusterQueue | None:
        return next((queue for queue in self.queues if queue.name == name), None)

    def largest(self, queue: ClusterQueue, resource: str, flavor: str = "") -> Decimal | None:
        return largest(self.quotas, cluster_queue=queue.name, resource=resource, flavor=flavor)

    def gpu_flavors(self, queue: ClusterQueue) -> list[FlavorRow]:
        """The flavors of a queue that have GPUs, by name."""
        rows = []
        for quota in self.quotas:
            flavor = self.flavors.get(quota.flavor)
            if quota.cluster_queue != queue.name or flavor is None or quota.resource != flavor.gpu_resource:
                continue
            rows.append(_row(flavor, quota, self.largest(queue, quota.resource, quota.flavor) or Decimal(0)))
        return rows


def _row(flavor: ResourceFlavor, quota: Quota, most: Decimal) -> FlavorRow:
    return FlavorRow(
        name=flavor.name,
        label=flavor.label,
        gpu_model=flavor.gpu_model,
        gpu_resource=flavor.gpu_resource,
        nominal=quota.nominal,
        most=most,
        pretended=flavor.pretended,
        node_labels=tuple(sorted((str(key), str(value)) for key, value in flavor.node_labels.items())),
    )
