"""Running a job again."""

from portal.jobs.models import Job
from portal.jobs.services.submit import Submitted
from portal.teams.models import User


def rerun(*, actor: User, job: Job, newest: bool = False, idempotency_key: str | None = None) -> Submitted:
    """Submit the same again, with the same template version or the newest. Raises as `submit` does."""
    raise NotImplementedError
