"""The newest lines of a stream, as rows that may still be merged."""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db.models import F, QuerySet
from django.db.models.functions import Length

from portal.logs.models import Chunk
from portal.logs.policy import CHUNK_LINES, joins, packs
from portal.logs.specs import Record

# Chunks fetched by one query: at most 4 MiB of ordinary chunks.
_FETCH = 64
# How many small chunks a merge may swallow: each is at least twice as long as the next, so ten span CHUNK_LINES.
_LOOK_BACK = 10


class _Text(NamedTuple):
    """A chunk's content."""

    first_line: int
    first_byte: int
    data: bytes
    times: bytes

    def records(self) -> list[Record]:
        stamps = struct.unpack(f"<{len(self.times) // 8}q", self.times)
        *whole, rest = self.data.split(b"\n")
        texts = [text + b"\n" for text in whole]
        if rest:
            texts.append(rest)
        return [Record(stamp, text) for stamp, text in zip(stamps, texts, strict=True)]


class DatabaseStore:
    """Chunks as rows. A line is found by its number through the unique index on (stream, first line)."""

    def append(self, stream_id: UUID, *, first_line: int, first_byte: int, records: Sequence[Record]) -> None:
        groups = [_pack(group) for group in packs(records)]
        first_line, first_byte, groups[0] = self._merge(stream_id, first_line, first_byte, groups[0])
        rows = []
        for data, times in groups:
            lines = len(times) // 8
            rows.append(
                Chunk(
                    stream_id=stream_id,
                    first_line=first_line,
                    lines=lines,
                    first_byte=first_byte,
                    data=data,
                    times=times,
                )
            )
            first_line += lines
            first_byte += len(data)
        Chunk.objects.bulk_create(rows)

    def _merge(
        self, stream_id: UUID, first_line: int, first_byte: int, group: tuple[bytes, bytes]
    ) -> tuple[int, int, tuple[bytes, bytes]]:
        """Swallow the small chunks before the new text; the numbers then begin with the first of them."""
        data, times = group
        if not joins(before=(1, 1), lines=len(times) // 8, size=len(data)):
            return first_line, first_byte, group
        last = Chunk.objects.filter(stream_id=stream_id).order_by("-first_line")
        sizes = last.annotate(size=Length("data")).values_list("lines", "size")[:_LOOK_BACK]
        lines, size, wanted = len(times) // 8, len(data), 0
        for before in sizes:
            if not joins(before=before, lines=lines, size=size):
                break
            lines, size, wanted = lines + before[0], size + before[1], wanted + 1
        swallowed = []
        for row in last.values_list("pk", "first_line", "first_byte", "data", "times")[:wanted] if wanted else ():
            # A text without a line feed ends its chunk for good.
            if not bytes(row[3]).endswith(b"\n"):
                break
            swallowed.append(row[0])
            first_line, first_byte = row[1], row[2]
            data, times = bytes(row[3]) + data, bytes(row[4]) + times
        if swallowed:
            Chunk.objects.filter(pk__in=swallowed).delete()
        return first_line, first_byte, (data, times)

    def read(self, stream_id: UUID, *, first: int, limit: int, max_bytes: int) -> list[Record]:
        found: list[Record] = []
        size, position, end = 0, first, first + limit
        while position < end:
            texts = self._texts(stream_id, position, end)
            for text in texts:
                for record in text.records()[position - text.first_line : end - text.first_line]:
                    found.append(record)
                    position += 1
                    size += len(record.text)
                    if size >= max_bytes:
                        return found
            if len(texts) < _FETCH:
                break
        return found

    def backwards(self, stream_id: UUID) -> Iterator[Record]:
        end: int | None = None
        while True:
            rows = Chunk.objects.filter(stream_id=stream_id).order_by("-first_line")
            if end is not None:
                rows = rows.filter(first_line__lt=end)
            text = next(iter(_read(rows[:1])), None)
            if text is None:
                return
            records = text.records()
            # A merge meanwhile may have put lines that were already given into this chunk.
            yield from reversed(records if end is None else records[: end - text.first_line])
            end = text.first_line

    def content(self, stream_id: UUID) -> Iterator[bytes]:
        line, byte = 1, 0
        while texts := self._texts(stream_id, line, None):
            for text in texts:
                part = text.data[byte - text.first_byte :]
                line, byte = text.first_line + len(text.times) // 8, byte + len(part)
                yield part

    def _texts(self, stream_id: UUID, first: int, end: int | None) -> list[_Text]:
        """The chunks that hold line `first` and those behind it, in order; at most `_FETCH`."""
        rows = Chunk.objects.filter(stream_id=stream_id, first_line__gt=first - CHUNK_LINES).order_by("first_line")
        if end is not None:
            rows = rows.filter(first_line__lt=end)
        # A chunk that begins less than CHUNK_LINES before `first` may still end before it: left out unread.
        rows = rows.filter(lines__gt=first - F("first_line"))
        return _read(rows[:_FETCH])


def _pack(records: Sequence[Record]) -> tuple[bytes, bytes]:
    return (
        b"".join([record.text for record in records]),
        struct.pack(f"<{len(records)}q", *[record.time_ns for record in records]),
    )


def _read(rows: QuerySet[Chunk]) -> list[_Text]:
    fields = rows.values_list("first_line", "first_byte", "data", "times")
    return [_Text(line, byte, bytes(data), bytes(times)) for line, byte, data, times in fields]
