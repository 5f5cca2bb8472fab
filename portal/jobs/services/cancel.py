"""Ending a job on somebody's wish."""

from portal.jobs.models import Job
from portal.teams.models import User


def cancel(*, actor: User, job: Job) -> Job:
    """Ask for the job's end. Idempotent. Raises `Forbidden`, `Refused` if it is over."""
    raise NotImplementedError
