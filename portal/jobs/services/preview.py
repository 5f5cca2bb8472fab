"""Looking before the click."""

from uuid import UUID

from portal.clusters.gateway import backend_of
from portal.clusters.specs import JobSpec
from portal.jobs.policy.specs_of import spec_of
from portal.jobs.services.draft import Draft, demand_right, draft
from portal.jobs.specs import JobRequest, Preview

NOBODY = UUID(int=0)


def preview(request: JobRequest) -> Preview:
    """What `submit` would do, by the same way, without writing anything. Raises `Forbidden`, `Refused`."""
    demand_right(request)
    found = draft(request)
    spec = _spec(request, found)
    return Preview(
        name=found.name,
        template_version=found.version.number,
        queue=found.queue.name,
        spec=spec,
        estimate=found.estimate,
        manifests=tuple(backend_of(found.queue.cluster).manifests(spec)),
    )


def _spec(request: JobRequest, found: Draft) -> JobSpec:
    return spec_of(
        job_id=NOBODY,
        attempt=1,
        team=request.team,
        submitted_by=request.user.get_username(),
        name=found.name,
        cluster_queue=found.queue,
        work=found.work,
        node_selector=found.node_selector,
        gpu_resource=found.gpu_resource,
    )
