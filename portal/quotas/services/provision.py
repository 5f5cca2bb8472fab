"""A team's namespace and LocalQueues in a cluster."""

from portal.clusters.gateway import backend_of
from portal.clusters.policy import namespace_for
from portal.clusters.specs import TeamSpace
from portal.core.clock import now
from portal.quotas.models import ClusterQueue, LocalQueue
from portal.teams.models import Team


def local_queue(*, team: Team, cluster_queue: ClusterQueue) -> LocalQueue:
    """The team's LocalQueue for a ClusterQueue, made in the caller's transaction if it is new."""
    queue, _ = LocalQueue.objects.get_or_create(team=team, cluster_queue=cluster_queue)
    return queue


def ensure_provisioned(queue: LocalQueue) -> None:
    """Have namespace and LocalQueues of the team made in the cluster, if that was not done yet.

    Speaks to the cluster, so never inside a transaction. All LocalQueues of the team go along, because a namespace is
    brought in step as a whole. Raises `PassingError`, `PermanentError`.
    """
    if queue.provisioned_at is not None:
        return
    team, cluster = queue.team, queue.cluster_queue.cluster
    rows = list(
        LocalQueue.objects.filter(team=team, cluster_queue__cluster=cluster, cluster_queue__removed_at=None)
        .select_related("cluster_queue")
        .order_by("cluster_queue__name")
    )
    space = TeamSpace(
        cluster=cluster.name,
        namespace=namespace_for(team.slug),
        team=team.slug,
        queues=tuple((row.cluster_queue.name, row.cluster_queue.name) for row in rows),
    )
    backend_of(cluster).provision(space)
    moment = now()
    LocalQueue.objects.filter(pk__in=[row.pk for row in rows]).update(provisioned_at=moment)
    queue.provisioned_at = moment


def forget_provisioned(queue: LocalQueue) -> None:
    """Say that the cluster turned out to lack the team's place, so that the next dispatch makes it again."""
    LocalQueue.objects.filter(team=queue.team_id, cluster_queue__cluster=queue.cluster_queue.cluster_id).update(
        provisioned_at=None
    )
    queue.provisioned_at = None
