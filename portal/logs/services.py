"""The verbs of the log.

The stream's cursor is moved by a conditional UPDATE, so that a replay or a second reader changes nothing.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import F

from portal.clusters.specs import ContainerRef
from portal.core import bus, leases
from portal.core.clock import now
from portal.logs.models import Stream
from portal.logs.policy import display_text, is_record
from portal.logs.specs import Record
from portal.logs.store import store

_TROUBLE_LENGTH = 300


def open_stream(
    *,
    job_id: UUID | str,
    attempt_number: int,
    ref: ContainerRef,
    pod_index: int = 0,
    fence: leases.Fence | None = None,
) -> Stream:
    """The stream of this container in this life, made at its first mention.

    Raises `IntegrityError` if the job is unknown, `leases.FencedOff` if somebody else leads now.
    """
    with transaction.atomic():
        leases.check(fence)
        stream, made = Stream.objects.get_or_create(
            pod_uid=ref.pod_uid,
            container=ref.container,
            restart=ref.restart,
            defaults={
                "job_id": job_id,
                "attempt_number": attempt_number,
                "pod_name": ref.pod,
                "pod_index": pod_index,
            },
        )
        if made:
            bus.announce(f"job:{job_id}", kind="log", stream=str(stream.pk))
    return stream


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


def note_trouble(*, stream_id: UUID, trouble: str, fence: leases.Fence | None = None) -> None:
    """Say beside the log that something is missing in it. Kept when the stream is completed, and said once."""
    with transaction.atomic():
        leases.check(fence)
        stream = Stream.objects.select_for_update().get(pk=stream_id)
        if trouble not in stream.trouble:
            stream.trouble = f"{stream.trouble} {trouble}".strip()[:_TROUBLE_LENGTH]
            stream.save(update_fields=["trouble"])
        bus.announce(f"stream:{stream_id}", trouble=True)


def complete(*, stream_id: UUID, trouble: str = "", fence: leases.Fence | None = None) -> None:
    """Nothing more will come. `trouble`: why the end could not be had. Doing it twice changes nothing."""
    with transaction.atomic():
        leases.check(fence)
        open_rows = Stream.objects.filter(pk=stream_id, completed_at__isnull=True)
        row = open_rows.values_list("job_id", "trouble", "next_line").first()
        if row is None:
            return
        job_id, earlier, next_line = row
        words = " ".join(sentence for sentence in (earlier, trouble) if sentence)
        if open_rows.update(completed_at=now(), open_text="", trouble=words[:_TROUBLE_LENGTH]):
            bus.announce(f"stream:{stream_id}", next_line=next_line, complete=True)
            bus.announce(f"job:{job_id}", kind="log", stream=str(stream_id), complete=True)
