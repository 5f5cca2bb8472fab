"""Reads of usage."""

from uuid import UUID

from django.db.models import QuerySet

from portal.jobs.models import Job
from portal.usage.models import Interval


def intervals_of(job: Job) -> QuerySet[Interval]:
    """Everything that a job held: per pod and resource, by start."""
    return Interval.objects.filter(job=job)


def held_in(cluster: str) -> QuerySet[Interval]:
    """What pods of one cluster hold now."""
    return Interval.objects.filter(ended_at__isnull=True, job__queue__cluster_queue__cluster__name=cluster)


def to_count() -> QuerySet[Interval]:
    """Closed intervals that nobody has counted with yet, the oldest first."""
    return Interval.objects.filter(ended_at__isnull=False, frozen_at__isnull=True).order_by("id")


def holds_something(*, job_id: UUID | str, attempt_number: int) -> bool:
    """Whether a pod of this attempt still holds a resource."""
    return Interval.objects.filter(job_id=job_id, attempt_number=attempt_number, ended_at__isnull=True).exists()
