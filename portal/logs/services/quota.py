"""How much log of one job is kept. What comes after is counted; job and stream end as they would without a limit."""

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.db.models import F, Sum

from portal.core import bus
from portal.core.clock import now
from portal.logs.models import Cause, Gap, Stream
from portal.logs.specs import Record, Taken

# A stream asks for the job's sum each time it has grown by this much: what is kept may exceed the rule by it.
_STEP = 1024 * 1024


def note_size(stream_id: UUID, *, before: int, after: int) -> None:
    """Inside the transaction of an append: close the stream to further lines if the job has reached its limit."""
    limit = settings.BEAMTIME_LOG_BYTES_PER_JOB
    if not limit:
        return
    step = min(_STEP, max(limit // 100, 1))
    # A stream's first lines ask too, so that a container that starts again and again is noticed.
    if before and before // step == after // step:
        return
    job = Stream.objects.filter(pk=stream_id).values("job_id")
    stored = Stream.objects.filter(job_id__in=job).aggregate(bytes=Sum("bytes"))["bytes"]
    if stored >= limit:
        Stream.objects.filter(pk=stream_id).update(full_at=now(), open_text="")


def is_full(stream_id: UUID) -> bool:
    """Whether the stream takes no more lines because its job may not store more."""
    return Stream.objects.filter(pk=stream_id, completed_at__isnull=True, full_at__isnull=False).exists()


def leave_out(stream_id: UUID, records: Sequence[Record]) -> Taken:
    """Inside the transaction of an append that found no place: count the lines if the stream is full.

    A read that is taken up again repeats what was left out before; so only lines later than the last counted one count.
    Where many share that time the count is too low, never too high.
    """
    full = Stream.objects.select_for_update().filter(pk=stream_id, completed_at__isnull=True, full_at__isnull=False)
    row = full.values_list("next_line", "last_time_ns", "job_id").first()
    if row is None:
        return Taken.REFUSED
    next_line, last_ns, job_id = row
    gap, new = Gap.objects.get_or_create(
        stream_id=stream_id,
        before_line=next_line,
        cause=Cause.FULL,
        defaults={"after_ns": last_ns, "lines": 0, "bytes": 0},
    )
    counted = [record for record in records if gap.until_ns is None or record.time_ns > gap.until_ns]
    if counted:
        Gap.objects.filter(pk=gap.pk).update(
            lines=F("lines") + len(counted),
            bytes=F("bytes") + sum(len(record.text) for record in counted),
            until_ns=max(record.time_ns for record in counted),
        )
    if new:
        bus.announce(f"stream:{stream_id}", gap=next_line)
        bus.announce(f"job:{job_id}", kind="log", stream=str(stream_id))
    return Taken.LEFT_OUT
