"""What is said of a log whose text has expired or will. Pure."""

from datetime import datetime, timedelta

from django.utils import timezone

from portal.logs.models import Stream


def expires_at(*, ended_at: datetime | None, days: int) -> datetime | None:
    """When the logs of a job expire that ended then; None: not while it goes on, or never."""
    return None if ended_at is None or days == 0 else ended_at + timedelta(days=days)


def expired_words(stream: Stream, *, rule: str) -> str:
    """One sentence instead of the text. `rule`: whose rule it was; needs `expired_at`."""
    lines = stream.next_line - 1
    digest = f", sha256 {stream.sha256}" if stream.sha256 else ""
    what = f"{lines:,} line{'' if lines == 1 else 's'}, {stream.bytes:,} bytes{digest}"
    return f"Expired on {_date(stream.expired_at)} by the rule of {rule}: {what}."


def expiring_words(moment: datetime, *, rule: str) -> str:
    """One sentence beside the text."""
    return f"Kept until {_date(moment)} by the rule of {rule}."


def _date(moment: datetime | None) -> str:
    return "an unknown date" if moment is None else f"{timezone.localtime(moment):%-d %B %Y}"
