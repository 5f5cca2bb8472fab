"""What Beamtime's attempts hold of the quotas at this moment, and what those that wait ask.

Numbers of the portal's own jobs only. Where other tools submit to the same queues, Kueue knows more than this.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import BooleanField, F, Q, QuerySet
from django.db.models.expressions import RawSQL

from portal.jobs.models import Attempt
from portal.quotas.models import ClusterQueue
from portal.quotas.policy import Held, ModelRoom, models_of
from portal.quotas.selectors import gpu_rows_open_to
from portal.teams.models import Team

_ZERO = Decimal(0)
# Written out, in the words of the partial index that serves it (Attempt.Meta): SQLite looks at no bound values when it
# decides whether such an index fits, and would read every attempt that there ever was.
_IN_CLUSTER = RawSQL(
    "jobs_attempt.state IN ('queued', 'starting', 'running', 'cancelling')", (), output_field=BooleanField()
)
_ASKED = ("gpus", "cpu_millicores", "memory_mib", "runs", "parallelism", "flavor", "time_limit_seconds")


@dataclass(frozen=True, slots=True)
class Want:
    """What one attempt asks or holds in all its pods at once. cpu in cores, memory in GiB."""

    queue_id: int
    flavor: str
    gpu_resource: str
    gpus: int
    cores: Decimal
    gib: Decimal

    @classmethod
    def of(cls, attempt: Attempt) -> "Want":
        """From an attempt that `admitted` or `waiting` has read."""
        job = attempt.job
        pods = _asked(attempt, "runs") or 1
        pods = min(pods, _asked(attempt, "parallelism") or pods)
        return cls(
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
    """The time limit of an attempt that `admitted` or `waiting` has read."""
    return _asked(attempt, "time_limit_seconds") or None


def admitted() -> list[Attempt]:
    """Attempts that hold quota: let in by the queue and not over. One query, as many rows as the quota has room for."""
    return list(_attempts(Q(admitted_at__isnull=False)))


def waiting(most: int, *, queue_id: int | None = None) -> list[Attempt]:
    """Attempts that a ClusterQueue, or any, has not let in, the longest waiting first; at most so many. One query."""
    mine = Q() if queue_id is None else Q(job__queue__cluster_queue=queue_id)
    return list(_attempts(mine & Q(admitted_at__isnull=True)).order_by("job__submitted_at", "pk")[:most])


def waiting_jobs(queue: ClusterQueue) -> int:
    """How many attempts wait in a queue. One query."""
    return _attempts(Q(admitted_at__isnull=True, job__queue__cluster_queue=queue)).count()


def _attempts(condition: Q) -> QuerySet[Attempt]:
    """With the numbers of the work and without the work: scripts are long, and nobody reads them here."""
    return (
        _living(condition)
        .select_related("job__queue__cluster_queue", "job__team")
        .defer("job__work", "job__values", "job__node_selector", "job__estimate")
        .annotate(**{f"asked_{name}": F(f"job__work__{name}") for name in _ASKED})
    )


def _living(condition: Q) -> QuerySet[Attempt]:
    return Attempt.objects.filter(_IN_CLUSTER, condition, ended_at__isnull=True)


def held_by(attempts: Iterable[Attempt]) -> Held:
    """What these attempts hold, by queue, flavor and resource."""
    held: dict[tuple[int, str, str], Decimal] = defaultdict(lambda: _ZERO)
    for want in map(Want.of, attempts):
        held[want.queue_id, want.flavor, want.gpu_resource] += want.gpus
        held[want.queue_id, want.flavor, "cpu"] += want.cores
        held[want.queue_id, want.flavor, "memory"] += want.gib
    return held


def free_by_model(team: Team) -> Sequence[ModelRoom]:
    """GPUs that a team may take now, one line per flavor. Two queries."""
    return models_of([row for row in gpu_rows_open_to(team, _gpus_held()) if row.is_gpu])


def _gpus_held() -> Held:
    """GPUs that attempts hold. The frame of every page asks: no job without GPUs is read for it, and no whole row."""
    held: dict[tuple[int, str, str], Decimal] = defaultdict(lambda: _ZERO)
    rows = _living(Q(admitted_at__isnull=False, job__work__gpus__gt=0)).values_list(
        "job__queue__cluster_queue_id",
        "flavor",
        "job__work__flavor",
        "job__gpu_resource",
        "job__work__gpus",
        "job__work__runs",
        "job__work__parallelism",
    )
    for queue_id, given, asked, resource, gpus, runs, parallelism in rows:
        pods = min(runs or 1, parallelism or runs or 1)
        held[queue_id, given or str(asked or ""), resource] += int(gpus) * pods
    return held
