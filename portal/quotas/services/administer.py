"""What an administrator has changed about a queue of this machine: written down, and given to the cluster."""

import logging
from functools import partial
from typing import Any

from django.db import transaction

from portal.audit import services as audit
from portal.clusters.models import BackendKind, Cluster
from portal.clusters.specs import ClusterError
from portal.core.clock import now
from portal.core.errors import Problem, Refused
from portal.quotas.models import ClusterQueue
from portal.quotas.services.synchronise import publish
from portal.teams.models import User
from portal.teams.services import demand_admin

logger = logging.getLogger(__name__)


def describe(queue: ClusterQueue) -> dict[str, Any]:
    """A queue with its numbers and its teams, as the audit keeps it."""
    return {
        "cohort": queue.cohort,
        "stopped": queue.stopped,
        "open_to_all": queue.open_to_all,
        "teams": sorted(queue.teams.values_list("slug", flat=True)),
        "quotas": {
            f"{quota.flavor.name} {quota.resource}": [
                f"{quota.nominal.normalize():f}",
                None if quota.borrowing_limit is None else f"{quota.borrowing_limit.normalize():f}",
            ]
            for quota in queue.quotas.select_related("flavor")
        },
    }


def queue_changed(*, actor: User, queue: ClusterQueue, before: dict[str, Any] | None) -> None:
    """Record what was changed in the caller's transaction, and publish the queues of a `local` cluster after it.

    `before` is `describe` from before the change, None for a new queue. Raises `Forbidden`.
    """
    demand_admin(actor, "Only an administrator of the site changes queues.")
    after = describe(queue)
    if before == after:
        return
    action = "queue.add" if before is None else "queue.change"
    audit.record(actor=actor, action=action, subject=queue, before=before, after=after)
    if queue.cluster.backend == BackendKind.LOCAL:
        transaction.on_commit(partial(_publish, queue.cluster), robust=True)


def remove_queue(*, actor: User, queue: ClusterQueue) -> None:
    """Close a queue of a `local` cluster for good; its jobs and what they cost keep their queue.

    Raises `Forbidden`; `Refused` for a queue that mirrors Kubernetes.
    """
    demand_admin(actor, "Only an administrator of the site removes queues.")
    if queue.cluster.backend != BackendKind.LOCAL:
        raise Refused(Problem("", f"{queue.name} is Kueue's. Delete the ClusterQueue in the cluster.", "mirrored"))
    with transaction.atomic():
        marked = ClusterQueue.objects.filter(pk=queue.pk, removed_at=None).update(removed_at=now())
        if marked:
            audit.record(actor=actor, action="queue.remove", subject=queue, before=describe(queue))
            transaction.on_commit(partial(_publish, queue.cluster), robust=True)


def _publish(cluster: Cluster) -> None:
    try:
        publish(cluster)
    except ClusterError as error:
        # The row is the truth, and every minute the rows are published again.
        logger.warning("queues of cluster %s were not published: %s", cluster.name, error)
