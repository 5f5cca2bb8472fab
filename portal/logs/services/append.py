"""Lines into a stream, behind the last."""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import F

from portal.core import bus, leases, metrics
from portal.core.clock import now
from portal.logs.models import Source, Stream
from portal.logs.policy import display_text, is_record
from portal.logs.policy.stamps import NANO
from portal.logs.services.gaps import note_losses
from portal.logs.services.quota import is_full, leave_out, note_size
from portal.logs.specs import Batch, Loss, Record, Taken
from portal.logs.store import store


def append(
    *,
    stream_id: UUID,
    first_line: int,
    records: Sequence[Record],
    open_text: str = "",
    losses: Sequence[Loss] = (),
    fence: leases.Fence | None = None,
    source: Source = Source.FOLLOWER,
) -> Taken:
    """Store lines `first_line` and following. False, and nothing stored, if the cursor is not there any more.

    Nor if `source` may not add lines to this stream (any more).
    `LEFT_OUT` if the job has stored as much log as it may: the lines are counted and get no number.
    `open_text` is the beginning of the line that is being written; `losses` is what could not be had, stored
    with the lines or not at all. Raises `leases.FencedOff`, and `ValueError` for a text that is not one line (see
    LINES.md).
    """
    if not records:
        with transaction.atomic():
            shown_only = set_open_text(stream_id=stream_id, next_line=first_line, text=open_text, fence=fence)
            if shown_only:
                note_losses(stream_id, losses)
        return Taken.STORED if shown_only else Taken.REFUSED
    batch = records if isinstance(records, Batch) else Batch.of(records)
    if not batch.trusted:
        for text in batch.texts:
            if not is_record(text):
                raise ValueError(f"a record of stream {stream_id} is not one line: {text[:80]!r}")
    shown = display_text(open_text)
    size = sum(map(len, batch.texts))
    with transaction.atomic():
        leases.check(fence)
        rows = Stream.objects.filter(pk=stream_id, completed_at__isnull=True, full_at__isnull=True)
        moved = rows.filter(next_line=first_line, source=source).update(
            next_line=first_line + len(batch),
            bytes=F("bytes") + size,
            last_time_ns=batch.times[-1],
            open_text=shown,
        )
        if not moved:
            return leave_out(stream_id, batch)
        # Read back under the row's lock, which the UPDATE took.
        end: int = Stream.objects.values_list("bytes", flat=True).get(pk=stream_id)
        store().append(stream_id, first_line=first_line, first_byte=end - size, records=batch)
        note_losses(stream_id, losses)
        note_size(stream_id, before=end - size, after=end)
        bus.announce(f"stream:{stream_id}", next_line=first_line + len(batch))
        transaction.on_commit(partial(_count, source, len(batch), size, batch.times[-1]), robust=True)
    return Taken.STORED


def _count(source: Source, lines: int, size: int, newest_ns: int) -> None:
    metrics.LOG_LINES.labels(source.value).inc(lines)
    metrics.LOG_BYTES.labels(source.value).inc(size)
    # Two clocks are compared: a node's that is ahead must not give ages below nothing.
    metrics.LOG_LAG.labels(source.value).observe(max(0.0, now().timestamp() - newest_ns / NANO))


def set_open_text(*, stream_id: UUID, next_line: int, text: str, fence: leases.Fence | None = None) -> bool:
    """Show what the unfinished line says now. False if the cursor is no longer at `next_line`."""
    with transaction.atomic():
        leases.check(fence)
        rows = Stream.objects.filter(pk=stream_id, next_line=next_line, completed_at__isnull=True, full_at__isnull=True)
        if not rows.update(open_text=display_text(text)):
            return is_full(stream_id)
        bus.announce(f"stream:{stream_id}", next_line=next_line)
    return True
