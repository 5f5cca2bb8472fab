"""What is free at this moment: the quotas of the ClusterQueues, less what Beamtime's admitted attempts hold of them.

Numbers of the portal's own jobs only. Where other tools submit to the same queues, Kueue knows more than this.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from django.conf import settings
from django.db.models import BooleanField, F, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils.translation import gettext

from portal.clusters.models import ResourceFlavor
from portal.jobs.models import Attempt
from portal.quotas.models import ClusterQueue, FlavorQuota
from portal.quotas.selectors import queues_open_to
from portal.teams.models import Team

# (ClusterQueue id, flavor name, resource) -> units
Held = dict[tuple[int, str, str], Decimal]
_ZERO = Decimal(0)
# Written out, in the words of the partial index that serves it (Attempt.Meta): SQLite looks at no bound values when it
# decides whether such an index fits, and would read every attempt that there ever was.
_IN_CLUSTER = RawSQL(
    "jobs_attempt.state IN ('queued', 'starting', 'running', 'cancelling')", (), output_field=BooleanField()
)
_ASKED = ("gpus", "cpu_millicores", "memory_mib", "runs", "parallelism", "flavor", "time_limit_seconds")


@dataclass(slots=True)
class Row:
    """One resource in one flavor of one ClusterQueue. cpu in cores, memory in GiB, GPUs in GPUs.

    `free` is what a job could take now, borrowing included; `most` what one could ever take.
    """

    queue: ClusterQueue
    flavor: ResourceFlavor
    resource: str
    nominal: Decimal
    borrowing_limit: Decimal | None
    held: Decimal = _ZERO
    free: Decimal = _ZERO
    most: Decimal = _ZERO

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
            return gpu_words(self.flavor)
        return {"cpu": gettext("Cores"), "memory": gettext("Memory, GiB")}.get(self.resource, self.resource)


def gpu_words(flavor: ResourceFlavor) -> str:
    """ "NVIDIA H100 (pretended)" -> "H100 (pretended)": a short name for narrow places; the maker is no news there."""
    return flavor.label.removeprefix("NVIDIA ")


def memory_beside(flavor: ResourceFlavor) -> int | None:
    """GiB of one GPU, to stand beside its name; None where the name says it already, as in "H100 80GB HBM3"."""
    said = re.search(r"[0-9] ?Gi?B", flavor.gpu_model)
    return None if said else flavor.gpu_memory_gib


@dataclass(slots=True)
class ModelRoom:
    """GPUs of one flavor, over the queues that a team may use."""

    flavor: ResourceFlavor
    free: int = 0
    total: int = 0
    most: int = 0
    queues: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        return gpu_words(self.flavor)


@dataclass(frozen=True, slots=True)
class Want:
    """What one attempt asks or holds in all its pods at once."""

    attempt_id: int
    queue_id: int
    flavor: str
    gpu_resource: str
    gpus: int
    cores: Decimal
    gib: Decimal

    @classmethod
    def of(cls, attempt: Attempt) -> "Want":
        """From an attempt that `_attempts` has read."""
        job = attempt.job
        pods = _asked(attempt, "runs") or 1
        pods = min(pods, _asked(attempt, "parallelism") or pods)
        return cls(
            attempt_id=attempt.pk,
            queue_id=job.queue.cluster_queue_id,
            flavor=attempt.flavor or str(getattr(attempt, "asked_flavor", "") or ""),
            gpu_resource=job.gpu_resource,
            gpus=_asked(attempt, "gpus") * pods,
            cores=Decimal(_asked(attempt, "cpu_millicores") * pods) / 1000,
            gib=Decimal(_asked(attempt, "memory_mib") * pods) / 1024,
        )


def _asked(attempt: Attempt, name: str) -> int:
    """A number of the work, 0 where it names none."""
    return int(getattr(attempt, f"asked_{name}") or 0)


def limit_seconds(attempt: Attempt) -> int | None:
    """The time limit of an attempt that `_attempts` has read."""
    return _asked(attempt, "time_limit_seconds") or None


def admitted() -> list[Attempt]:
    """Attempts that hold quota: let in by the queue and not over. One query, as many rows as the quota has room for."""
    return list(_attempts(Q(admitted_at__isnull=False)))


def waiting(most: int) -> list[Attempt]:
    """Attempts that the queue has not let in, the longest waiting first; at most so many. One query."""
    return list(_attempts(Q(admitted_at__isnull=True)).order_by("job__submitted_at", "pk")[:most])


def waiting_jobs(queue: ClusterQueue) -> int:
    """How many attempts wait in a queue. One query."""
    return _attempts(Q(admitted_at__isnull=True, job__queue__cluster_queue=queue)).count()


def _attempts(condition: Q) -> QuerySet[Attempt]:
    """With the numbers of the work and without the work: scripts are long, and nobody reads them here."""
    return (
        Attempt.objects.filter(_IN_CLUSTER, condition, ended_at__isnull=True)
        .select_related("job__queue__cluster_queue", "job__team")
        .defer("job__work", "job__values", "job__node_selector", "job__estimate")
        .annotate(**{f"asked_{name}": F(f"job__work__{name}") for name in _ASKED})
    )


def held_by(attempts: Iterable[Attempt]) -> Held:
    """What these attempts hold, by queue, flavor and resource."""
    held: Held = defaultdict(lambda: _ZERO)
    for want in map(Want.of, attempts):
        held[want.queue_id, want.flavor, want.gpu_resource] += want.gpus
        held[want.queue_id, want.flavor, "cpu"] += want.cores
        held[want.queue_id, want.flavor, "memory"] += want.gib
    return held


def rows(held: Held) -> list[Row]:
    """Every quota of every ClusterQueue that is there, with what is held, free and the most. One query."""
    quotas = (
        FlavorQuota.objects.filter(cluster_queue__removed_at=None, flavor__removed_at=None)
        .filter(cluster_queue__cluster__name=settings.BEAMTIME_CLUSTER_NAME)
        .select_related("cluster_queue", "flavor")
        .order_by("cluster_queue__name", "flavor__name", "resource")
    )
    found = [
        Row(q.cluster_queue, q.flavor, q.resource, q.nominal, q.borrowing_limit,
            held.get((q.cluster_queue_id, q.flavor.name, q.resource), _ZERO))
        for q in quotas
    ]  # fmt: skip
    cohorts: dict[tuple[int, str, int, str], list[Row]] = defaultdict(list)
    for row in found:
        # A queue without a cohort is alone; it shares a key with nobody.
        cohort = row.queue.cohort or f"\0{row.queue.pk}"
        cohorts[row.queue.cluster_id, cohort, row.flavor.pk, row.resource].append(row)
    for members in cohorts.values():
        nominal = sum((m.nominal for m in members), _ZERO)
        unused = nominal - sum((m.held for m in members), _ZERO)
        for row in members:
            cap = nominal if row.borrowing_limit is None else min(nominal, row.nominal + row.borrowing_limit)
            row.most = cap
            row.free = _ZERO if row.queue.stopped else max(_ZERO, min(cap - row.held, unused))
    return found


def free_by_model(team: Team) -> Sequence[ModelRoom]:
    """GPUs that a team may take now, one line per flavor. Three queries."""
    open_ids = set(queues_open_to(team).values_list("pk", flat=True))
    return models_of([row for row in rows(held_by(admitted())) if row.is_gpu and row.queue.pk in open_ids])


def models_of(gpu_rows: Iterable[Row]) -> list[ModelRoom]:
    """GPU rows of several queues put together by flavor.

    Queues of one cohort share what is free, so the fullest of them speaks for all; apart from that they add up.
    """
    found: dict[int, ModelRoom] = {}
    best: dict[tuple[int, str], tuple[int, int]] = {}
    for row in gpu_rows:
        room = found.setdefault(row.flavor.pk, ModelRoom(row.flavor))
        room.queues.append(row.queue.name)
        room.most = max(room.most, int(row.most))
        share = (row.flavor.pk, row.queue.cohort or f"\0{row.queue.pk}")
        before = best.get(share, (0, 0))
        best[share] = (max(before[0], int(row.free)), max(before[1], int(row.most)))
        room.free += best[share][0] - before[0]
        room.total += best[share][1] - before[1]
    return list(found.values())
