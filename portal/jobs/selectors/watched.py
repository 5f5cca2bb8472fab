"""For the watcher: what should exist in a cluster, and what was left open there."""

from collections.abc import Collection

from portal.jobs.models import Attempt, Pod
from portal.jobs.policy.states import IN_CLUSTER


def expected_objects(cluster: str) -> dict[str, tuple[str, int]]:
    """What should exist in a cluster: "namespace/name" -> (job id, attempt). One query over an index of its own."""
    rows = Attempt.objects.filter(
        # The second is implied by the first; the index is told by it.
        state__in=IN_CLUSTER,
        ended_at=None,
        withdrawn_at=None,
        job__queue__cluster_queue__cluster__name=cluster,
    ).exclude(object_uid="")
    found = rows.values_list("namespace", "object_name", "job_id", "number")
    return {f"{namespace}/{name}": (str(job_id), number) for namespace, name, job_id, number in found}


def living_pods(cluster: str) -> list[Pod]:
    """The pods, with their attempt, whose end nobody has seen, of attempts that are not over. One query."""
    alive = Pod.objects.filter(gone=False, attempt__ended_at=None).exclude(phase__in=("Succeeded", "Failed"))
    mine = alive.filter(attempt__job__queue__cluster_queue__cluster__name=cluster)
    return list(mine.select_related("attempt").order_by("pk"))


def places_of(attempts: Collection[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """Where attempts have their object: (job id, attempt) -> "namespace/name". One query."""
    rows = Attempt.objects.filter(job_id__in={job_id for job_id, _number in attempts})
    found = rows.values_list("job_id", "number", "namespace", "object_name")
    return {(str(job_id), number): f"{namespace}/{name}" for job_id, number, namespace, name in found}
