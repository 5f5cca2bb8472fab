"""Saying what is missing in a log, and why."""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from portal.core import bus, leases
from portal.logs.models import Cause, Gap, Stream
from portal.logs.specs import Loss


def note_gap(
    *,
    stream_id: UUID,
    before_line: int,
    cause: Cause,
    after_ns: int | None = None,
    until_ns: int | None = None,
    lines: int | None = None,
    bytes: int | None = None,
    fence: leases.Fence | None = None,
) -> None:
    """Lines were lost before the line of this number. Said once for each line and cause.

    `after_ns`, `until_ns`: times of the last record before the gap and of the first behind it. `lines`, `bytes`: how
    many are missing, where that is known. Raises `leases.FencedOff`.
    """
    facts = {"after_ns": after_ns, "until_ns": until_ns, "lines": lines, "bytes": bytes}
    with transaction.atomic():
        leases.check(fence)
        if cause != Cause.FULL and Gap.objects.filter(stream_id=stream_id, cause=Cause.FULL).exists():
            # Nothing behind it is kept anyway: that gap says so and counts.
            return
        Gap.objects.update_or_create(
            stream_id=stream_id,
            before_line=before_line,
            cause=cause,
            defaults={name: value for name, value in facts.items() if value is not None},
        )
        bus.announce(f"stream:{stream_id}", gap=before_line)
        job_id = Stream.objects.values_list("job_id", flat=True).get(pk=stream_id)
        bus.announce(f"job:{job_id}", kind="log", stream=str(stream_id))


def note_losses(stream_id: UUID, losses: Sequence[Loss]) -> None:
    """The same for several, inside the transaction of whoever stores the lines behind them."""
    for loss in losses:
        note_gap(
            stream_id=stream_id,
            before_line=loss.before_line,
            cause=Cause(loss.cause),
            after_ns=loss.after_ns,
            until_ns=loss.until_ns,
            lines=loss.lines,
            bytes=loss.bytes,
        )
