"""One job: its page, its parts, and what a filled form begins with."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from portal.clusters.gateway import backend_of
from portal.core.errors import Missing
from portal.jobs.models import Attempt, Event, Job
from portal.jobs.policy.specs_of import spec_of_job
from portal.teams.models import User


def job_for(user: User, job_id: UUID | str) -> Job:
    """A job with what its page names, in one query. An unknown, a foreign and a malformed id are all `Missing`."""
    found = None
    if isinstance(job_id, UUID) or _is_uuid(job_id):
        found = (
            Job.objects.visible_to(user)
            .select_related("team", "template_version__template", "queue__cluster_queue__cluster")
            .filter(pk=job_id)
            .first()
        )
    if found is None:
        raise Missing("There is no such job, or it is not open to you.")
    return found


def attempts_of(job: Job) -> list[Attempt]:
    """The tries at a job, the first one first, each with its pods. Two queries."""
    return list(job.attempts.prefetch_related("pods").order_by("number"))


def events_of(job: Job) -> list[Event]:
    """What happened to a job, oldest first. One query."""
    return list(job.events.all())


def manifests_of(job: Job, *, attempt: int = 1) -> list[dict[str, Any]]:
    """Exactly what is made in the cluster for an attempt; secrets by name only."""
    return backend_of(job.queue.cluster_queue.cluster).manifests(spec_of_job(job, attempt))


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    """What the filled form of a job begins with. `secrets` names what has to be entered again."""

    template: str
    version: int
    name: str
    queue: str
    values: dict[str, Any]
    secrets: tuple[str, ...]


def clone_values(job: Job) -> Clone:
    """The form as it was sent, without secrets, which are not kept."""
    return Clone(
        template=job.template_version.template.slug,
        version=job.template_version.number,
        name=job.name,
        queue=job.queue.cluster_queue.name,
        values=dict(job.values),
        secrets=tuple(job.work.get("secret_env", ())),
    )


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except (ValueError, AttributeError, TypeError):
        return False
    return True
