"""Lines into a stream, behind the last."""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import F

from portal.core import bus, leases
from portal.logs.models import Stream
from portal.logs.policy import display_text, is_record
from portal.logs.specs import Record
from portal.logs.store import store


def append(
    *,
    stream_id: UUID,
    first_line: int,
    records: Sequence[Record],
    open_text: str = "",
    fence: leases.Fence | None = None,
) -> bool:
    """Store lines `first_line` and following. False, and nothing stored, if the cursor is not there any more.

    `open_text` is the beginning of the line that is being written. Raises `leases.FencedOff`, and `ValueError` for a
    text that is not one line (see LINES.md).
    """
    if not records:
        return set_open_text(stream_id=stream_id, next_line=first_line, text=open_text, fence=fence)
    for record in records:
        if not is_record(record.text):
            raise ValueError(f"a record of stream {stream_id} is not one line: {record.text[:80]!r}")
    shown = display_text(open_text)
    size = sum(len(record.text) for record in records)
    with transaction.atomic():
        leases.check(fence)
        moved = Stream.objects.filter(pk=stream_id, next_line=first_line, completed_at__isnull=True).update(
            next_line=first_line + len(records),
            bytes=F("bytes") + size,
            last_time_ns=records[-1].time_ns,
            open_text=shown,
        )
        if not moved:
            return False
        # Read back under the row's lock, which the UPDATE took.
        end: int = Stream.objects.values_list("bytes", flat=True).get(pk=stream_id)
        store().append(stream_id, first_line=first_line, first_byte=end - size, records=records)
        bus.announce(f"stream:{stream_id}", next_line=first_line + len(records))
    return True


def set_open_text(*, stream_id: UUID, next_line: int, text: str, fence: leases.Fence | None = None) -> bool:
    """Show what the unfinished line says now. False if the cursor is no longer at `next_line`."""
    with transaction.atomic():
        leases.check(fence)
        rows = Stream.objects.filter(pk=stream_id, next_line=next_line, completed_at__isnull=True)
        if not rows.update(open_text=display_text(text)):
            return False
        bus.announce(f"stream:{stream_id}", next_line=next_line)
    return True
