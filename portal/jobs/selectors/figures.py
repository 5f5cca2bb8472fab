"""For the operator's metrics: how much is under way and how much of it is late. Each is answered by a small index."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Q

from portal.core.clock import now
from portal.jobs.models import ACTIVE, Attempt, State


@dataclass(frozen=True, slots=True)
class Due:
    """What the cluster shall have and has not, unclaimed at this moment. `since`: of the oldest; None without any."""

    rows: int
    since: datetime | None


def active_by_state() -> dict[str, int]:
    """How many jobs are in each state that is no end, 0 included. One query."""
    rows = Attempt.objects.filter(ended_at=None).order_by().values_list("state").annotate(rows=Count("*"))
    found = dict(rows)
    return {str(state): found.get(state, 0) for state in State if state in ACTIVE}


def oldest_submitted() -> datetime | None:
    """When the job was submitted that has waited longest for its object in the cluster. One query."""
    waiting = Attempt.objects.filter(state=State.SUBMITTED, ended_at=None)
    found: datetime | None = waiting.aggregate(since=Min("job__submitted_at"))["since"]
    return found


def due() -> Due:
    """One query."""
    moment = now()
    free = Attempt.objects.filter(Q(claimed_until=None) | Q(claimed_until__lt=moment), due_at__lte=moment)
    return Due(**free.aggregate(rows=Count("*"), since=Min("due_at")))
