"""Rights that hang on whose job it is; everything else about rights stands in the table of `teams.policy`."""

from portal.jobs.models import Job
from portal.teams.models import User
from portal.teams.policy import Action, SiteRole, may


def may_cancel(roles: frozenset[SiteRole], *, user: User, job: Job) -> bool:
    """One's own job, or any of the team for its leads. `roles` are the person's in the job's team."""
    own = job.submitted_by_id == user.pk and may(roles, Action.CANCEL_OWN_JOB)
    return own or may(roles, Action.CANCEL_ANY_JOB)
