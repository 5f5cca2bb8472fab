"""The newest lines of a stream, as rows that may still be merged."""

from collections.abc import Sequence
from uuid import UUID

from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.functions import Length

from portal.logs.models import Chunk
from portal.logs.policy import CHUNK_LINES, joins, packs
from portal.logs.specs import Record
from portal.logs.store.portion import Portion, pack

# Chunks fetched by one query: at most 4 MiB of ordinary chunks.
FETCH = 64
# How many small chunks a merge may swallow: each is at least twice as long as the next, so ten span CHUNK_LINES.
_LOOK_BACK = 10
# Bytes from which on PostgreSQL takes rows faster by COPY.
_COPIED = 64 * 1024


def append(stream_id: UUID, *, first_line: int, first_byte: int, records: Sequence[Record]) -> None:
    """Add lines behind the last."""
    portions = []
    for group in packs(records):
        portions.append(pack(first_line, first_byte, group))
        first_line, first_byte = portions[-1].end, first_byte + len(portions[-1].data)
    portions[0] = _merge(stream_id, portions[0])
    if connection.vendor == "postgresql" and sum(len(portion.data) for portion in portions) >= _COPIED:
        _copy(stream_id, portions)
    else:
        Chunk.objects.bulk_create([Chunk(stream_id=stream_id, **portion._asdict()) for portion in portions])


def _copy(stream_id: UUID, portions: Sequence[Portion]) -> None:
    """The same as an insertion, but the bytes need not be written and read as hexadecimal digits of a statement."""
    with (
        connection.cursor() as cursor,
        cursor.copy(
            "COPY logs_chunk (stream_id, first_line, lines, first_byte, data, times) FROM STDIN (FORMAT BINARY)"
        ) as copy,
    ):
        copy.set_types(["uuid", "int8", "int4", "int8", "bytea", "bytea"])
        for portion in portions:
            copy.write_row((stream_id, *portion))


def _merge(stream_id: UUID, new: Portion) -> Portion:
    """Swallow the small chunks before the new text; it then begins with the first of them."""
    if not joins(before=(1, 1), lines=new.lines, size=len(new.data)):
        return new
    last = Chunk.objects.filter(stream_id=stream_id).order_by("-first_line")
    sizes = last.annotate(size=Length("data")).values_list("lines", "size")[:_LOOK_BACK]
    lines, size, wanted = new.lines, len(new.data), 0
    for before in sizes:
        if not joins(before=before, lines=lines, size=size):
            break
        lines, size, wanted = lines + before[0], size + before[1], wanted + 1
    swallowed = []
    for row in last.values_list("pk", "first_line", "first_byte", "data", "times")[:wanted] if wanted else ():
        data, times = bytes(row[3]), bytes(row[4])
        # A text without a line feed ends its chunk for good.
        if not data.endswith(b"\n"):
            break
        swallowed.append(row[0])
        new = Portion(row[1], new.lines + len(times) // 8, row[2], data + new.data, times + new.times)
    if swallowed:
        Chunk.objects.filter(pk__in=swallowed).delete()
    return new


def holding(stream_id: UUID, first: int, end: int | None, *, timed: bool) -> list[Portion]:
    """The chunks that hold line `first` and those behind it up to `end`, in order; at most `FETCH`, or none."""
    rows = Chunk.objects.filter(stream_id=stream_id, first_line__gt=first - CHUNK_LINES).order_by("first_line")
    if end is not None:
        rows = rows.filter(first_line__lt=end)
    # A chunk that begins less than CHUNK_LINES before `first` may still end before it: left out unread.
    rows = rows.filter(lines__gt=first - F("first_line"))
    found = _read(rows[:FETCH], timed=timed)
    # One query sees one state of the rows, so they follow on each other; but its first may lie behind what was sealed.
    return found if found and found[0].first_line <= first else []


def newest_before(stream_id: UUID, end: int | None, *, timed: bool) -> Portion | None:
    """The last chunk that begins before line `end`; the very last without it."""
    rows = Chunk.objects.filter(stream_id=stream_id).order_by("-first_line")
    if end is not None:
        rows = rows.filter(first_line__lt=end)
    return next(iter(_read(rows[:1], timed=timed)), None)


def _read(rows: QuerySet[Chunk], *, timed: bool) -> list[Portion]:
    fields = ["first_line", "lines", "first_byte", "data"] + ["times"] * timed
    return [
        Portion(row[0], row[1], row[2], bytes(row[3]), bytes(row[4]) if timed else b"")
        for row in rows.values_list(*fields)
    ]
