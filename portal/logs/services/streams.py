"""The beginning and the end of a stream."""

from uuid import UUID

from django.db import transaction

from portal.clusters.specs import ContainerRef
from portal.core import bus, leases
from portal.core.clock import now
from portal.logs.models import Cause, Stream
from portal.logs.services.gaps import note_gap


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


def complete(*, stream_id: UUID, missing: Cause | None = None, fence: leases.Fence | None = None) -> None:
    """Nothing more will come. `missing`: why the end could not be had, if it could not. Twice changes nothing."""
    with transaction.atomic():
        leases.check(fence)
        open_rows = Stream.objects.filter(pk=stream_id, completed_at__isnull=True)
        row = open_rows.values_list("job_id", "next_line", "last_time_ns").first()
        if row is None or not open_rows.update(completed_at=now(), open_text=""):
            return
        job_id, next_line, last_ns = row
        if missing is not None:
            note_gap(stream_id=stream_id, before_line=next_line, cause=missing, after_ns=last_ns, fence=fence)
        bus.announce(f"stream:{stream_id}", next_line=next_line, complete=True)
        bus.announce(f"job:{job_id}", kind="log", stream=str(stream_id), complete=True)
