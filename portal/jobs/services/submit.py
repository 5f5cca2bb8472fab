"""Accepting a job: one row that promises it, in one transaction, and a hint."""

from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction

from portal.audit import services as audit
from portal.clusters.policy import namespace_for, object_name
from portal.core import metrics
from portal.core.clock import now
from portal.core.errors import Conflicting
from portal.core.hints import nudge
from portal.core.secrets import seal
from portal.jobs.models import Attempt, Job, JobSecret, State
from portal.jobs.services.changes import announce_change, record_event
from portal.jobs.services.draft import Draft, demand_right, digest_of, draft
from portal.jobs.specs import JobRequest
from portal.quotas import services as quotas


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job; `created` is False when the same request had made it before."""

    job: Job
    created: bool


def submit(request: JobRequest) -> Submitted:
    """Accept a job, or say everything that speaks against it.

    The same key of the same person gives the first job again, also if much has changed since. Raises `Forbidden`,
    `Refused`, and `Conflicting` if the key was used for another request.
    """
    demand_right(request)
    digest = digest_of(request)
    known = _known(request, digest)
    if known is not None:
        return known
    found = draft(request)
    try:
        with transaction.atomic():
            job = _create(request, found, digest)
    except IntegrityError:
        # Somebody was faster with the same key; anything else is a fault of ours.
        known = _known(request, digest)
        if known is None:
            raise
        return known
    metrics.JOBS_SUBMITTED.inc()
    return Submitted(job, created=True)


def _known(request: JobRequest, digest: str) -> Submitted | None:
    if not request.idempotency_key or not request.idempotency_key.isprintable():
        return None
    mine = Job.objects.filter(submitted_by=request.user, idempotency_key=request.idempotency_key)
    # Hardly ever there; only then is it worth its columns and what belongs to it.
    if not mine.exists():
        return None
    job = mine.select_related("team", "template_version__template", "queue__cluster_queue").get()
    if job.request_digest != digest:
        raise Conflicting("This idempotency key was used for another request. Send this one with a new key.")
    return Submitted(job, created=False)


def _create(request: JobRequest, found: Draft, digest: str) -> Job:
    moment = now()
    queue = quotas.local_queue(team=request.team, cluster_queue=found.queue)
    job = Job.objects.create(
        team=request.team,
        team_name=request.team.name,
        submitted_by=request.user,
        submitted_by_name=request.user.get_username(),
        template_version=found.version,
        queue=queue,
        name=found.name,
        values=dict(found.filled.values),
        work=found.work.to_json(),
        node_selector=found.node_selector,
        gpu_model=found.gpu_model,
        gpu_resource=found.gpu_resource,
        state=State.SUBMITTED,
        submitted_at=moment,
        estimate=found.estimate.to_json(),
        idempotency_key=request.idempotency_key or None,
        request_digest=digest,
        rerun_of_id=request.rerun_of,
    )
    secrets = [JobSecret(job=job, name=name, sealed=seal(value)) for name, value in found.filled.secrets.items()]
    if secrets:
        JobSecret.objects.bulk_create(secrets)
    attempt = Attempt.objects.create(
        job=job,
        number=1,
        namespace=namespace_for(request.team.slug),
        object_name=object_name(job.id, 1),
        due_at=moment,
    )
    _write_down(request, job, attempt, moment, queue=found.queue.name)
    nudge("jobs.dispatch", attempt.pk)
    announce_change(job)
    return job


def _write_down(request: JobRequest, job: Job, attempt: Attempt, moment: datetime, *, queue: str) -> None:
    version = job.template_version
    message = f"Submitted by {job.submitted_by_name}."
    record_event(job, attempt, at=moment, kind="submitted", message=message, key="submitted")
    after = {
        "team": request.team.slug,
        "template": version.template.slug,
        "version": version.number,
        "queue": queue,
        "rerun_of": str(request.rerun_of or ""),
    }
    audit.record(actor=request.user, action="job.submit", subject=job, after=after)
