"""Moving lines that nothing will change any more from chunks into segments; proving a complete stream by its digest.

Whatever is killed, and wherever: lines are either still chunks or already a segment, because one transaction does both.
What was put into the object store before that transaction lies under a name made of its content; the next try makes
the same segment, and so the same object.
"""

import hashlib
import logging
import os
import socket
import time
from collections import OrderedDict
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Length

from portal.core import bus, leases
from portal.core.clock import now
from portal.core.errors import Unavailable
from portal.logs.damage import note as note_damage
from portal.logs.models import Chunk, Segment, Stream
from portal.logs.policy import CHUNK_LINES
from portal.logs.policy.stamps import NANO
from portal.logs.store import Damaged, objects, store
from portal.logs.store.blocks import SEGMENT_BYTES, SEGMENT_LINES, Built, build
from portal.logs.store.portion import Portion, lines_in

logger = logging.getLogger(__name__)

_LEASE, _TTL = "logs.seal", timedelta(seconds=120)
# Of a stream that goes on, this much before its last time stays in chunks: what a resumed read asks for never depends
# on another place than the database.
_KEPT_NS = 10 * NANO
# And this much text, where sealed lines go to another place: what a last read of a whole file is compared with.
_KEPT_BYTES = 24 * 1024 * 1024
# Digests that a former call could not finish, with the line to go on from. Lost with the process, and begun anew.
_begun: "OrderedDict[UUID, tuple[Any, int]]" = OrderedDict()
_MOST_BEGUN = 64


def seal(*, budget: float = 15.0) -> int:
    """Seal what is due, for about `budget` seconds. How many segments were made; 0 while another worker is at it."""
    holder, deadline = f"{socket.gethostname()}:{os.getpid()}:{uuid4()}", time.monotonic() + budget
    fence = leases.take(name=_LEASE, holder=holder, ttl=_TTL)
    made = 0
    if fence is None:
        return made
    try:
        for stream_id in _due():
            while time.monotonic() < deadline and _step(stream_id, fence, deadline):
                made += 1
                leases.take(name=_LEASE, holder=holder, ttl=_TTL)
            if time.monotonic() >= deadline:
                break
    except leases.FencedOff:
        logger.info("logs: another worker seals now")
    except Unavailable as error:
        # It would not answer for the next stream either. The lines stay where they are.
        logger.warning("logs: sealing waits: %s", error)
    finally:
        leases.release(name=_LEASE, holder=holder)
    return made


def seal_stream(*, stream_id: UUID, fence: leases.Fence | None = None) -> int:
    """All that is due of one stream, with its digest if it is complete. How many segments were made.

    Raises `Unavailable`, `Damaged`, `leases.FencedOff`.
    """
    made = 0
    while _move(stream_id, fence):
        made += 1
    _finish(stream_id, fence, deadline=None)
    return made


def _due() -> list[UUID]:
    """Streams with something to seal, the oldest first."""
    much = Q(bytes__gte=F("sealed_bytes") + SEGMENT_BYTES) | Q(next_line__gte=F("sealed_line") + SEGMENT_LINES)
    rows = Stream.objects.filter(sealed_at__isnull=True, expired_at__isnull=True)
    return list(rows.filter(much | Q(completed_at__isnull=False)).order_by("created_at").values_list("pk", flat=True))


def _step(stream_id: UUID, fence: leases.Fence, deadline: float) -> bool:
    """One segment, or the digest if none is left. Whether there was a segment to make."""
    try:
        if _move(stream_id, fence):
            return True
        _finish(stream_id, fence, deadline)
    except Damaged as error:
        # A person has to look at it; the other streams must not wait for that.
        note_damage(stream_id, error)
    return False


def _move(stream_id: UUID, fence: leases.Fence | None) -> bool:
    """Make the next segment of a stream; False if there is none to make. Raises `Damaged`, `Unavailable`."""
    row = Stream.objects.filter(pk=stream_id, sealed_at__isnull=True, expired_at__isnull=True).first()
    if row is None or row.sealed_line == row.next_line:
        return False
    portions = _ready(row)
    if not portions:
        return False
    if (portions[0].first_line, portions[0].first_byte) != (row.sealed_line, row.sealed_bytes):
        raise Damaged(f"line {row.sealed_line} should be the first in chunks, but line {portions[0].first_line} is")
    built = build(portions)
    # Outside of any transaction: it may take long, and may be in vain.
    key = objects.shelf().put(stream_id, built.first_line, built.body) if objects.in_use() else ""
    return _commit(stream_id, built, key, fence)


def _ready(stream: Stream) -> list[Portion]:
    """The chunks of the next segment; none if it is not due yet. Always the same ones, however often it is tried."""
    rows = Chunk.objects.filter(stream_id=stream.pk).order_by("first_line")
    full = Q(first_byte__gte=stream.sealed_bytes + SEGMENT_BYTES) | Q(
        first_line__gte=stream.sealed_line + SEGMENT_LINES
    )
    behind = rows.filter(full, first_line__gt=stream.sealed_line).defer("data").first()
    if stream.completed_at is None and (behind is None or not _settled(stream, behind)):
        return []
    if behind is not None:
        rows = rows.filter(first_line__lt=behind.first_line)
    fields = rows.values_list("first_line", "lines", "first_byte", "data", "times")
    return [Portion(row[0], row[1], row[2], bytes(row[3]), bytes(row[4])) for row in fields]


def _settled(stream: Stream, chunk: Chunk) -> bool:
    """Whether a stream that goes on is past what lies before this chunk: no merge reaches it, and no resumed read."""
    if chunk.first_line > stream.next_line - CHUNK_LINES or stream.last_time_ns is None:
        return False
    if objects.in_use() and chunk.first_byte > stream.bytes - _KEPT_BYTES:
        return False
    return int.from_bytes(bytes(chunk.times[:8]), "little", signed=True) < stream.last_time_ns - _KEPT_NS


def _commit(stream_id: UUID, built: Built, key: str, fence: leases.Fence | None) -> bool:
    """Chunks out, segment in, border moved. False if the chunks are not what the segment was made of any more."""
    end = built.first_line + built.lines
    with transaction.atomic():
        leases.check(fence)
        # An append that merges chunks holds this lock too.
        rows = Stream.objects.select_for_update().filter(pk=stream_id, sealed_line=built.first_line)
        if not list(rows.filter(expired_at__isnull=True).values_list("pk", flat=True)):
            return False
        moved = Chunk.objects.filter(stream_id=stream_id, first_line__gte=built.first_line, first_line__lt=end)
        counted = moved.aggregate(lines=Sum("lines"), size=Sum(Length("data")))
        if (counted["lines"], counted["size"]) != (built.lines, built.size):
            return False
        Segment.objects.create(
            stream_id=stream_id,
            first_line=built.first_line,
            lines=built.lines,
            first_byte=built.first_byte,
            bytes=built.size,
            sha256=built.sha256,
            index=built.index,
            data=None if key else built.body,
            key=key,
        )
        moved.delete()
        Stream.objects.filter(pk=stream_id).update(sealed_line=end, sealed_bytes=built.first_byte + built.size)
    return True


def _finish(stream_id: UUID, fence: leases.Fence | None, deadline: float | None) -> None:
    """Read a complete and wholly sealed stream once more, as a reader would, and write down its digest.

    Goes on in the next call where the time ended. Raises `Damaged` if bytes or lines are not as many as were stored.
    """
    row = Stream.objects.filter(
        pk=stream_id, completed_at__isnull=False, sealed_at__isnull=True, expired_at__isnull=True
    ).first()
    if row is None or row.sealed_line != row.next_line:
        return
    digest, line = _begun.pop(stream_id, (hashlib.sha256(), 1))
    for first, data in store().scan(stream_id, line):
        if first != line:
            raise Damaged(f"line {line} should follow, but line {first} does")
        digest.update(data)
        line += lines_in(data)
        if deadline is not None and time.monotonic() > deadline:
            _begun[stream_id] = digest, line
            while len(_begun) > _MOST_BEGUN:
                _begun.popitem(last=False)
            return
    if line != row.next_line:
        raise Damaged(f"the text ends before line {line}, the stream before line {row.next_line}")
    with transaction.atomic():
        leases.check(fence)
        unsealed = Stream.objects.filter(pk=stream_id, sealed_at__isnull=True, expired_at__isnull=True)
        if unsealed.update(sealed_at=now(), sha256=digest.hexdigest()):
            bus.announce(f"stream:{stream_id}", sha256=digest.hexdigest())
            bus.announce(f"job:{row.job_id}", kind="log", stream=str(stream_id))
