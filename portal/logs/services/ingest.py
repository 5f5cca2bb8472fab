"""Logs that a collector on the node delivers: kept at once, numbered when their order is certain.

A delivery is acknowledged once it is stored as a parcel; repeats are recognised by `policy.collected`. Numbering then
moves records from parcels into the stream, in one transaction, under the lock of the stream's intake.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.core.cache import cache
from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Length
from redis import RedisError

from portal.clusters.policy import attempt_of_pod
from portal.clusters.specs import ContainerRef
from portal.core import leases
from portal.core.clock import now
from portal.core.errors import Unavailable
from portal.core.hints import nudge
from portal.jobs.models import Attempt
from portal.logs.models import Cause, Gap, Intake, Parcel, Source, Stream
from portal.logs.policy.collected import SKEW_NS, Book, Seen, Taken
from portal.logs.policy.parcels import open_lines_of, open_lines_to_json, spans_of, spans_to_json
from portal.logs.services.append import append
from portal.logs.services.gaps import note_gap
from portal.logs.services.streams import open_stream
from portal.logs.services.waiting import Waiting, keep, portion, settling_of
from portal.logs.specs import Record
from portal.logs.store import store

# Bytes of a stream's parcels beyond which its collector is asked to wait.
MOST_WAITING = 256 * 1024 * 1024
# How far a collector has read, in the cache, by the name of its process.
_READ, _READ_SECONDS = "collector-read:{}", 3600
# Portions of one stream in a row, before the next one has its turn.
_IN_A_ROW = 64
# Between two looks of which the first was in vain.
IDLE = timedelta(seconds=1)


def accept(
    *,
    cluster: str,
    delivery: Mapping[ContainerRef, Sequence[Seen]],
    read_ns: Mapping[ContainerRef, int] | None = None,
    sender: str = "",
) -> int:
    """Keep what was delivered; returns how many records belong to no job of this cluster's.

    `read_ns`: when the collector read the newest record of each container; 0 or none: when it comes. `sender`: names
    the process of the collector.
    Raises `Unavailable` when more of a stream waits than can be numbered: the collector keeps it and tries again.
    """
    strange = 0
    streams: dict[UUID, tuple[Sequence[Seen], int]] = {}
    for ref, records in delivery.items():
        stream = _stream_of(cluster, ref)
        if stream is None:
            strange += len(records)
        elif stream.completed_at is None:
            streams[stream.pk] = records, (read_ns or {}).get(ref, 0)
    sizes = Parcel.objects.filter(stream__in=streams).order_by().values_list("stream")
    if any(size > MOST_WAITING for _, size in sizes.annotate(size=Sum(Length("data")))):
        raise Unavailable("More of a log is waiting than can be numbered. Send it again in some seconds.")
    with transaction.atomic():
        for key, (records, moment) in streams.items():
            keep(key, records, read_ns=moment, sender=sender)
            nudge("logs.number", str(key))
    _remember_reading(sender, max((read_ns or {}).values(), default=0))
    return strange


def _remember_reading(sender: str, read_ns: int) -> None:
    """How far a process of a collector has read, in whatever log. Without the cache, it is only not known."""
    if sender and read_ns > _has_read(sender):
        with suppress(RedisError):
            cache.set(_READ.format(sender), read_ns, _READ_SECONDS)


def _has_read(sender: str) -> int:
    """0 if it is not known."""
    with suppress(RedisError):
        return int(cache.get(_READ.format(sender), 0))
    return 0


def number(*, stream_id: UUID, hurry: bool = False) -> int:
    """Number what has its place; returns how many lines came of it. More may be waiting.

    `hurry`: nothing more is to come, so what waits is numbered as it stands.
    """
    with transaction.atomic():
        intake = Intake.objects.select_for_update(no_key=True).filter(stream=stream_id).first()
        if intake is None:
            return 0
        # The door must be able to add parcels meanwhile, which look at the row's key.
        stream = Stream.objects.select_for_update(no_key=True).get(pk=stream_id)
        if stream.completed_at is not None:
            Parcel.objects.filter(stream=stream_id).delete()
            return 0
        parcels = portion(stream_id)
        if not parcels:
            return 0
        waiting = Waiting(parcels)
        settling = settling_of(intake, waiting, hurry=hurry)
        book = Book(spans_of(intake.spans), open_lines_of(intake.open_lines))
        taken = book.take(waiting.records(), waited=settling.waited, took=settling.took, joins=settling.joins)
        if taken.records and stream.source == Source.FOLLOWER:
            # From here on the follower cannot add a line, so what it has stored is all that it will ever store.
            Stream.objects.filter(pk=stream_id).update(source=Source.COLLECTOR)
            intake.follower_until_ns = stream.last_time_ns
        if intake.follower_until_ns is not None:
            _leave_out_stored(stream, taken, intake.follower_until_ns)
        count = _store(stream, taken)
        waiting.keep_only(taken.rest)
        intake.spans, intake.open_lines = spans_to_json(book.spans), open_lines_to_json(book.open_lines)
        intake.grown_ns = settling.grown_ns
        intake.idle_at = None if taken.records else now()
        intake.save(update_fields=["spans", "open_lines", "follower_until_ns", "grown_ns", "idle_at"])
    return count


def number_all(*, stream_id: UUID) -> None:
    """Number a stream's waiting records, portion by portion, as long as lines come of it.

    Where something is missing every delivery is in vain, and looking costs time: so not too often.
    """
    if Intake.objects.filter(stream=stream_id, idle_at__gt=now() - IDLE).exists():
        return
    for _ in range(_IN_A_ROW):
        if not number(stream_id=stream_id):
            return


def number_waiting() -> None:
    """Number whatever waits, stream by stream: what a lost hint missed, and what had to wait."""
    for stream_id in Parcel.objects.order_by().values_list("stream", flat=True).distinct():
        number_all(stream_id=stream_id)


def _stream_of(cluster: str, ref: ContainerRef) -> Stream | None:
    """The stream of a container of one of this portal's jobs in this cluster; made at its first mention."""
    place = attempt_of_pod(ref.pod)
    if place is None:
        return None
    known = Attempt.objects.filter(
        job=place.job_id,
        number=place.attempt,
        namespace=ref.namespace,
        job__queue__cluster_queue__cluster__name=cluster,
    )
    if not known.exists():
        return None
    found = Stream.objects.filter(pod_uid=ref.pod_uid, container=ref.container, restart=ref.restart).first()
    if found is not None:
        return found if (found.job_id, found.pod_name) == (place.job_id, ref.pod) else None
    return open_stream(job_id=place.job_id, attempt_number=place.attempt, ref=ref, pod_index=place.index)


def _leave_out_stored(stream: Stream, taken: Taken, until_ns: int) -> None:
    """Take out what the follower had stored before the collector took over, known by time and text.

    And what it had declared missing between its lines: there is no number left for it there, and behind newer lines it
    would be in the wrong place. The gap says so.
    """
    if not any(record.time_ns <= until_ns + SKEW_NS for record in taken.records):
        return
    earliest = min(record.time_ns for record in taken.records)
    stored: Counter[Record] = Counter()
    for record in store().backwards(stream.pk):
        if record.time_ns < earliest - SKEW_NS:
            break
        if record.time_ns <= until_ns:
            stored[record] += 1
    bounds = Gap.objects.filter(stream=stream).values_list("after_ns", "until_ns")
    # A gap of which one bound is not known reaches to the first line, or to the last that the follower stored.
    missing = [(begin or 0, end or until_ns) for begin, end in bounds if begin is not None or end is not None]
    kept: list[Record] = []
    # How many lines are left before each position, for the holes.
    places = []
    for record in taken.records:
        places.append(len(kept))
        if stored[record] > 0:
            stored[record] -= 1
        elif record.time_ns > until_ns or not any(begin <= record.time_ns <= end for begin, end in missing):
            kept.append(record)
    places.append(len(kept))
    taken.records = kept
    taken.holes = [
        hole._replace(before=places[hole.before], after_ns=max(hole.after_ns or until_ns, until_ns))
        for hole in taken.holes
        if hole.until_ns > until_ns
    ]


def _store(stream: Stream, taken: Taken) -> int:
    if taken.records:
        append(stream_id=stream.pk, first_line=stream.next_line, records=taken.records, source=Source.COLLECTOR)
    for hole in taken.holes:
        note_gap(
            stream_id=stream.pk,
            before_line=stream.next_line + hole.before,
            cause=Cause.SKIPPED,
            after_ns=hole.after_ns,
            until_ns=hole.until_ns,
            bytes=hole.bytes,
        )
    return len(taken.records)


class Progress(NamedTuple):
    """How far a collector has come with a stream. `waiting`: parcels whose records have no number yet.

    `read_ns`: the process that has sent of it last has read, in any log, up to this moment of the node's clock, and has
    delivered all of that; 0: not known.
    """

    next_line: int
    last_time_ns: int | None
    waiting: int
    read_ns: int

    @property
    def of_this_log(self) -> tuple[int, int | None, int]:
        """Changes only with what has come of this log."""
        return self.next_line, self.last_time_ns, self.waiting


def progress(*, stream_id: UUID) -> Progress:
    """Two queries, and the cache."""
    row = Stream.objects.values_list("next_line", "last_time_ns", "intake__sender").get(pk=stream_id)
    next_line, last_ns, sender = row
    # Asked before what waits is counted: what was delivered until then is among it.
    read_ns = _has_read(sender) if sender else 0
    return Progress(next_line, last_ns, Parcel.objects.filter(stream=stream_id).count(), read_ns)


def hand_back(*, stream_id: UUID, fence: leases.Fence | None = None) -> None:
    """The collector has delivered the end, or has gone: number what waits; the follower compares and completes.

    Raises `leases.FencedOff`.
    """
    with transaction.atomic():
        # Before anything is numbered: a leader of the past must not do half of it.
        leases.check(fence)
    finish(stream_id=stream_id)
    with transaction.atomic():
        leases.check(fence)
        Stream.objects.filter(pk=stream_id).update(source=Source.FOLLOWER)


def finish(*, stream_id: UUID) -> None:
    """The container has ended and its last lines are delivered: what still waits is numbered as it stands."""
    while Parcel.objects.filter(stream=stream_id).exists():
        number(stream_id=stream_id, hurry=True)
    with transaction.atomic():
        intake = Intake.objects.select_for_update(no_key=True).filter(stream=stream_id).first()
        if intake is None:
            return
        book = Book(spans_of(intake.spans), open_lines_of(intake.open_lines))
        stream = Stream.objects.select_for_update(no_key=True).get(pk=stream_id)
        left = book.finish()
        if left:
            append(stream_id=stream_id, first_line=stream.next_line, records=left, source=Source(stream.source))
            intake.open_lines = {}
            intake.save(update_fields=["open_lines"])
