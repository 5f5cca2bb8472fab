"""The one store of lines: new ones in chunks, old ones in segments, and readers see no border.

Sealing moves lines from chunks to segments in one transaction. So what is in neither at one moment is looked for among
the chunks and *then* among the segments: in that order a move in between hides nothing.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

from portal.logs.models import Stream
from portal.logs.specs import Record
from portal.logs.store import chunks, segments
from portal.logs.store.blocks import SEGMENT_BYTES
from portal.logs.store.portion import Portion


class LineStore:
    """See `interface.Store`."""

    def append(self, stream_id: UUID, *, first_line: int, first_byte: int, records: Sequence[Record]) -> None:
        chunks.append(stream_id, first_line=first_line, first_byte=first_byte, records=records)

    def read(
        self, stream_id: UUID, *, first: int, limit: int, max_bytes: int, sealed_line: int | None = None
    ) -> list[Record]:
        found: list[Record] = []
        size = 0
        walk = forward(stream_id, first, first + limit, timed=True, sealed_line=sealed_line, most=max_bytes)
        for portion in walk:
            for record in portion.records():
                found.append(record)
                size += len(record.text)
                if size >= max_bytes:
                    return found
        return found

    def backwards(self, stream_id: UUID) -> Iterator[Record]:
        for portion in backward(stream_id, None, timed=True):
            yield from reversed(portion.records())

    def content(self, stream_id: UUID) -> Iterator[bytes]:
        for portion in forward(stream_id, 1, None, timed=False):
            yield portion.data

    def scan(self, stream_id: UUID, first_line: int = 1) -> Iterator[tuple[int, bytes]]:
        for portion in forward(stream_id, max(1, first_line), None, timed=False):
            yield portion.first_line, portion.data

    def scan_back(self, stream_id: UUID, last_line: int | None = None) -> Iterator[tuple[int, bytes]]:
        for portion in backward(stream_id, None if last_line is None else last_line + 1, timed=False):
            yield portion.first_line, portion.data


def forward(
    stream_id: UUID,
    first: int,
    end: int | None,
    *,
    timed: bool,
    sealed_line: int | None = None,
    most: int = SEGMENT_BYTES,
) -> Iterator[Portion]:
    """Lines from `first` on and before `end`, without a hole, until there is no more."""
    if sealed_line is None:
        sealed_line = Stream.objects.filter(pk=stream_id).values_list("sealed_line", flat=True).first() or 1
    line, sealed = first, first < sealed_line
    while end is None or line < end:
        # What is sealed stays sealed, so this is only the shorter way; the chunks are asked before giving up.
        ref = segments.holding(stream_id, line) if sealed else None
        if ref is None:
            found = chunks.holding(stream_id, line, end, timed=timed)
            for portion in found:
                part = portion.between(line, end)
                line = part.end
                yield part
            if found:
                continue
            ref = segments.holding(stream_id, line)
        if ref is None:
            return
        sealed = True
        whole = end is None and not timed
        ahead = segments.onward(stream_id, ref, line) if whole else None
        for part in ahead or segments.forward(ref, line, end, timed=timed, most=most):
            line = part.end
            yield part


def backward(stream_id: UUID, end: int | None, *, timed: bool) -> Iterator[Portion]:
    """Lines before `end`, or all, the last portion first, without a hole, until there is no more."""
    while end is None or end > 1:
        chunk = chunks.newest_before(stream_id, end, timed=timed)
        if chunk is not None and (end is None or end <= chunk.end):
            # A merge meanwhile may have put lines that were already given into this chunk.
            yield chunk.between(chunk.first_line, end)
            end = chunk.first_line
            continue
        ref = segments.newest(stream_id) if end is None else segments.holding(stream_id, end - 1)
        if ref is None:
            return
        yield from segments.backward(ref, end, timed=timed)
        end = ref.first_line
