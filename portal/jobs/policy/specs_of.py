"""From a job's row to what goes out to the cluster."""

from collections.abc import Mapping
from uuid import UUID

from portal.clusters.policy import namespace_for, object_name
from portal.clusters.specs import JobSpec, WorkSpec
from portal.jobs.models import Job
from portal.quotas.models import ClusterQueue
from portal.teams.models import Team


def spec_of(
    *,
    job_id: UUID,
    attempt: int,
    team: Team,
    submitted_by: str,
    name: str,
    cluster_queue: ClusterQueue,
    work: WorkSpec,
    node_selector: Mapping[str, str],
    gpu_resource: str,
) -> JobSpec:
    """One attempt, ready to become one object. The LocalQueue has the ClusterQueue's name."""
    return JobSpec(
        cluster=cluster_queue.cluster.name,
        namespace=namespace_for(team.slug),
        name=object_name(job_id, attempt),
        queue=cluster_queue.name,
        cluster_queue=cluster_queue.name,
        job_id=str(job_id),
        attempt=attempt,
        team=team.slug,
        submitted_by=submitted_by,
        display_name=name,
        work=work,
        node_selector=tuple(sorted(node_selector.items())),
        gpu_resource=gpu_resource,
    )


def spec_of_job(job: Job, attempt: int) -> JobSpec:
    """The spec of a stored job; `team` and `queue.cluster_queue.cluster` come loaded.

    Made of what was frozen with the row, so that every try of an attempt has the same digest.
    """
    return spec_of(
        job_id=job.id,
        attempt=attempt,
        team=job.team,
        submitted_by=job.submitted_by_name,
        name=job.name,
        cluster_queue=job.queue.cluster_queue,
        work=WorkSpec.from_json(job.work),
        node_selector=job.node_selector,
        gpu_resource=job.gpu_resource,
    )
