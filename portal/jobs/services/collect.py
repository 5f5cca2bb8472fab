"""Taking finished objects out of the cluster, once their story is stored."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from portal.core.clock import now
from portal.core.hints import nudge
from portal.jobs.models import TERMINAL, Attempt

# A story that cannot be stored whole, such as a log that nobody can read any more, keeps an object no longer than this.
LONGEST = timedelta(days=7)


def mark_stored(*, job_id: UUID, attempt_number: int) -> None:
    """Say that logs, pods and intervals of an ended attempt are all stored, so that its object may go. Idempotent."""
    Attempt.objects.filter(job_id=job_id, number=attempt_number, state__in=TERMINAL, stored_at=None).update(
        stored_at=now()
    )


def collect_finished() -> int:
    """Let dispatch delete the objects that ended BEAMTIME_KEEP_FINISHED ago and are stored, or long ago; how many.

    Only marks rows as due; the deletion is an errand like any other.
    """
    moment = now()
    old = moment - timedelta(seconds=settings.BEAMTIME_KEEP_FINISHED)
    count = (
        Attempt.objects.filter(state__in=TERMINAL, withdrawn_at=None, due_at=None, ended_at__lte=old)
        .filter(Q(stored_at__isnull=False) | Q(ended_at__lte=moment - LONGEST))
        .update(due_at=moment)
    )
    if count:
        nudge("jobs.sweep")
    return count
