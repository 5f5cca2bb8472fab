"""How much a queue can ever give, and how much of it is free. Pure; the numbers come loaded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from django.utils.translation import gettext

from portal.clusters.models import ResourceFlavor
from portal.clusters.specs import WorkSpec
from portal.quotas.models import ClusterQueue, FlavorQuota
from portal.quotas.specs import FlavorRow, Quota

# (ClusterQueue id, flavor name, resource) -> units
Held = Mapping[tuple[int, str, str], Decimal]
_ZERO = Decimal(0)


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
        return _ZERO
    others = sum(
        (
            other.nominal
            for other in quotas
            if other.cohort == quota.cohort
            and other.cluster_queue != quota.cluster_queue
            and (other.flavor, other.resource) == (quota.flavor, quota.resource)
        ),
        _ZERO,
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
            rows.append(_row(flavor, quota, self.largest(queue, quota.resource, quota.flavor) or _ZERO))
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


# --- at this moment -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Row:
    """One resource in one flavor of one ClusterQueue. cpu in cores, memory in GiB, GPUs in GPUs.

    `free` is what a job could take now, borrowing included; `most` what one could ever take.
    """

    queue: ClusterQueue
    flavor: ResourceFlavor
    resource: str
    nominal: Decimal
    held: Decimal
    most: Decimal
    free: Decimal = _ZERO

    @property
    def is_gpu(self) -> bool:
        return bool(self.flavor.gpu_resource) and self.resource == self.flavor.gpu_resource

    @property
    def borrowed(self) -> Decimal:
        """What is held beyond the queue's own quota."""
        return max(_ZERO, self.held - self.nominal)

    @property
    def words(self) -> str:
        """What is counted, for people: the GPU's name, cores, or GiB of memory."""
        if self.is_gpu:
            return self.flavor.short_label
        return {"cpu": gettext("Cores"), "memory": gettext("Memory, GiB")}.get(self.resource, self.resource)


@dataclass(slots=True)
class ModelRoom:
    """GPUs of one flavor, over several queues."""

    flavor: ResourceFlavor
    free: int = 0
    total: int = 0
    most: int = 0
    queues: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.flavor.short_label


def rows_of(loaded: Sequence[FlavorQuota], quotas: Sequence[Quota], held: Held) -> list[Row]:
    """Every quota with what is held, free and the most. `loaded` and `quotas` are the same quotas of a whole cluster.

    A cohort's queues share what none of them holds; a stopped queue gives nothing.
    """
    rows = []
    unused: dict[tuple[str, int, str], Decimal] = {}
    for q, quota in zip(loaded, quotas, strict=True):
        holds = held.get((q.cluster_queue_id, q.flavor.name, q.resource), _ZERO)
        most = quota.nominal + _borrowable(quota, quotas)
        rows.append(Row(q.cluster_queue, q.flavor, q.resource, q.nominal, holds, most))
        unused[_share(rows[-1])] = unused.get(_share(rows[-1]), _ZERO) + q.nominal - holds
    for row in rows:
        row.free = _ZERO if row.queue.stopped else max(_ZERO, min(row.most - row.held, unused[_share(row)]))
    return rows


def _share(row: Row) -> tuple[str, int, str]:
    """Within what the row's free units are shared: its cohort, or the queue alone under a name no cohort can have."""
    return row.queue.cohort or f"\0{row.queue.pk}", row.flavor.pk, row.resource


def models_of(gpu_rows: Iterable[Row]) -> list[ModelRoom]:
    """GPU rows of several queues put together by flavor.

    Queues of one cohort share what is free, so the fullest of them speaks for all; apart from that they add up.
    """
    found: dict[int, ModelRoom] = {}
    best: dict[tuple[str, int, str], tuple[int, int]] = {}
    for row in gpu_rows:
        room = found.setdefault(row.flavor.pk, ModelRoom(row.flavor))
        room.queues.append(row.queue.name)
        room.most = max(room.most, int(row.most))
        before = best.get(_share(row), (0, 0))
        best[_share(row)] = (max(before[0], int(row.free)), max(before[1], int(row.most)))
        room.free += best[_share(row)][0] - before[0]
        room.total += best[_share(row)][1] - before[1]
    return list(found.values())


def asks_of(work: WorkSpec) -> dict[str, Decimal]:
    """What all pods that run at once ask, by resource; GPUs under ""."""
    return {
        "": Decimal(work.gpus * work.at_once),
        "cpu": Decimal(work.cpu_millicores * work.at_once) / 1000,
        "memory": Decimal(work.memory_mib * work.at_once) / 1024,
    }


def nearest(work: WorkSpec, rows: Sequence[Row]) -> list[tuple[Row, Decimal]] | None:
    """What is short, as (row, asked), GPUs first, in the flavor that comes nearest to having room for the work.

    `rows` are those of one queue. Empty: there is room. None: the queue has no numbers for it.
    """
    shapes = _flavors(rows, work.flavor, gpu=work.gpus > 0)
    return min((_short(group, asks_of(work)) for group in shapes), key=len) if shapes else None


def _flavors(rows: Sequence[Row], wanted: str, *, gpu: bool) -> list[list[Row]]:
    """The queue's rows put together by flavor, of the flavors that could take the work."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        if not wanted or row.flavor.name == wanted:
            found.setdefault(row.flavor.pk, []).append(row)
    return [group for group in found.values() if not gpu or any(row.is_gpu for row in group)]


def _short(rows: Sequence[Row], asks: Mapping[str, Decimal]) -> list[tuple[Row, Decimal]]:
    """What is short in one flavor, GPUs first."""
    pairs = [(row, asks["" if row.is_gpu else row.resource]) for row in rows if row.is_gpu or row.resource in asks]
    return [(row, asked) for row, asked in sorted(pairs, key=lambda p: not p[0].is_gpu) if asked > row.free]
