"""Running a job again."""

from portal.core.errors import Problem, Refused
from portal.jobs.models import Job
from portal.jobs.services.draft import demand_right
from portal.jobs.services.submit import Submitted, submit
from portal.jobs.specs import JobRequest
from portal.teams.models import User


def rerun(*, actor: User, job: Job, newest: bool = False, idempotency_key: str | None = None) -> Submitted:
    """The same values again as a new job, with the same template version, or the `newest` one.

    A job's secrets are gone with its end and are never copied, so a job that had any is refused with the way on.
    Raises what `submit` raises.
    """
    request = JobRequest(
        team=job.team,
        user=actor,
        template=job.template_version.template.slug,
        version=None if newest else job.template_version.number,
        values=job.values,
        name=job.name,
        queue=job.queue.cluster_queue.name,
        idempotency_key=idempotency_key,
        rerun_of=job.id,
    )
    demand_right(request)
    names = list(job.work.get("secret_env", ()))
    if names:
        message = f"It needs {', '.join(names)}, which Beamtime does not keep. Open Clone and edit and enter it again."
        raise Refused(Problem("values", message, "secret"))
    return submit(request)
