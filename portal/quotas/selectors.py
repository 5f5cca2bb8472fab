"""Reads about queues. Everything about one cluster's queues is small, so it is read whole, in one query each."""

from collections.abc import Sequence

from django.conf import settings
from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet

from portal.quotas.models import ClusterQueue, FlavorQuota
from portal.quotas.policy import Held, QueueBook, Row, rows_of
from portal.quotas.specs import Quota
from portal.teams.models import Team


def queues_open_to(team: Team) -> QuerySet[ClusterQueue]:
    """The ClusterQueues of this portal's cluster that a team may submit to, by name."""
    return (
        ClusterQueue.objects.filter(cluster__name=settings.BEAMTIME_CLUSTER_NAME, removed_at=None)
        .filter(_open_to(team))
        .select_related("cluster")
    )


def _open_to(team: Team, queue: str = "") -> Q:
    """`queue`: the lookup that leads to the ClusterQueue, with its `__`."""
    mine = ClusterQueue.teams.through.objects.filter(team=team).values("clusterqueue_id")
    return Q(**{f"{queue}open_to_all": True}) | Q(**{f"{queue}pk__in": mine})


def book_of(team: Team) -> QueueBook:
    """Everything that submitting needs to know about queues. Two queries."""
    queues = tuple(queues_open_to(team))
    rows = list(_quota_rows(settings.BEAMTIME_CLUSTER_NAME))
    return QueueBook(queues, _quotas(rows), {row.flavor.name: row.flavor for row in rows})


def rows_now(held: Held) -> list[Row]:
    """Every quota of this portal's cluster, with what is held, free and the most. One query."""
    rows = list(_quota_rows(settings.BEAMTIME_CLUSTER_NAME))
    return rows_of(rows, _quotas(rows), held)


def gpu_rows_open_to(team: Team, held: Held) -> list[Row]:
    """The same for GPUs alone, which borrow nothing from cores and memory, in the team's queues. One query."""
    found = _quota_rows(settings.BEAMTIME_CLUSTER_NAME).filter(resource=F("flavor__gpu_resource"))
    is_open = ExpressionWrapper(_open_to(team, "cluster_queue__"), output_field=BooleanField())
    # Those of other queues are needed too: what they leave over can be borrowed.
    rows = list(found.annotate(is_open=is_open))
    open_ids = {row.cluster_queue_id for row in rows if row.is_open}
    return [row for row in rows_of(rows, _quotas(rows), held) if row.queue.pk in open_ids]


def _quota_rows(cluster_name: str) -> QuerySet[FlavorQuota]:
    return (
        FlavorQuota.objects.filter(cluster_queue__cluster__name=cluster_name, cluster_queue__removed_at=None)
        .filter(flavor__removed_at=None)
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
