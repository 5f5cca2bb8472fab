"""Reads about queues. Everything about one cluster's queues is small, so it is read whole, in one query each."""

from collections.abc import Sequence

from django.conf import settings
from django.db.models import F, Q, QuerySet

from portal.quotas.models import ClusterQueue, FlavorQuota
from portal.quotas.policy import Held, QueueBook, Row, rows_of
from portal.quotas.specs import Quota
from portal.teams.models import Team


def queues_open_to(team: Team) -> QuerySet[ClusterQueue]:
    """The ClusterQueues of this portal's cluster that a team may submit to, by name."""
    mine = ClusterQueue.teams.through.objects.filter(team=team).values("clusterqueue_id")
    return (
        ClusterQueue.objects.filter(cluster__name=settings.BEAMTIME_CLUSTER_NAME, removed_at=None)
        .filter(Q(open_to_all=True) | Q(pk__in=mine))
        .select_related("cluster")
    )


def book_of(team: Team) -> QueueBook:
    """Everything that submitting needs to know about queues. Two queries."""
    queues = tuple(queues_open_to(team))
    rows = _quota_rows(settings.BEAMTIME_CLUSTER_NAME)
    return QueueBook(queues, _quotas(rows), {row.flavor.name: row.flavor for row in rows})


def rows_now(held: Held) -> list[Row]:
    """Every quota of this portal's cluster, with what is held, free and the most. One query."""
    rows = _quota_rows(settings.BEAMTIME_CLUSTER_NAME)
    return rows_of(rows, _quotas(rows), held)


def gpu_rows_now(held: Held) -> list[Row]:
    """The same for GPUs alone, which borrow nothing from cores and memory. One query."""
    rows = _quota_rows(settings.BEAMTIME_CLUSTER_NAME, resource=F("flavor__gpu_resource"))
    return rows_of(rows, _quotas(rows), held)


def _quota_rows(cluster_name: str, **narrower: object) -> list[FlavorQuota]:
    return list(
        FlavorQuota.objects.filter(cluster_queue__cluster__name=cluster_name, cluster_queue__removed_at=None)
        .filter(flavor__removed_at=None, **narrower)
        .select_related("cluster_queue", "flavor")
        .order_by("cluster_queue__name", "flavor__name", "resource")
    )


def _quotas(rows: Sequence[FlavorQuota]) -> tuple[Quota, ...]:
    return tuple(
        Quota(
            row.cluster_queue.name,
            row.cluster_queue.cohort,
            row.flavor.name,
            row.resource,
            row.nominal,
            row.borrowing_limit,
        )
        for row in rows
    )
