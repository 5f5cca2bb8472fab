"""Reading sealed lines: which segment, which blocks of it, and no more than those."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import BinaryField, F, Func, QuerySet, Value

from portal.core.errors import Gone
from portal.logs.models import Segment
from portal.logs.store import objects
from portal.logs.store.blocks import Block, Damaged, read_index, unpack_text, unpack_times
from portal.logs.store.portion import Portion

_MANY = 4
# Its threads do nothing but unpack: they never touch the database, nor wait for anything.
_pool = ThreadPoolExecutor(2, thread_name_prefix="unpack")
_PART = "SELECT substr(data, %s, %s) FROM logs_segment WHERE id = %s"
_FIELDS = ("pk", "first_line", "lines", "first_byte", "bytes", "index", "key")


@dataclass(frozen=True, slots=True)
class Ref:
    """A segment without its body."""

    pk: int
    first_line: int
    lines: int
    first_byte: int
    size: int
    index: bytes
    key: str

    @property
    def end(self) -> int:
        return self.first_line + self.lines

    def blocks(self) -> list[Block]:
        """Raises `Damaged`."""
        return read_index(bytes(self.index), lines=self.lines, size=self.size)


def holding(stream_id: UUID, line: int) -> Ref | None:
    """The segment that holds this line. One indexed row."""
    return next((ref for ref in _refs(stream_id, last=line) if line < ref.end), None)


def by_key(pk: int) -> Ref:
    """A segment by its primary key. Raises `Gone`."""
    row = Segment.objects.filter(pk=pk).values_list(*_FIELDS).first()
    if row is None:
        raise Gone("this log has expired")
    return Ref(*row)


def newest(stream_id: UUID) -> Ref | None:
    return next(_refs(stream_id), None)


def forward(ref: Ref, first: int, end: int | None, *, timed: bool, most: int) -> Iterator[Portion]:
    """The lines of a segment from `first` on and before `end`, a block at a time.

    What is fetched at once holds about `most` bytes of text. Raises `Damaged`, and `Unavailable` if it lies elsewhere
    and that place does not answer, `Gone` if the text is deleted meanwhile.
    """
    skip, stop = first - ref.first_line, ref.lines if end is None else min(ref.lines, end - ref.first_line)
    wanted = [block for block in ref.blocks() if block.line + block.lines > skip and block.line < stop]
    while wanted:
        count, size = 1, wanted[0].size
        while count < len(wanted) and size < most:
            size += wanted[count].size
            count += 1
        for portion in _fetch(ref, wanted[:count], timed=timed):
            yield portion.between(first, end)
        wanted = wanted[count:]


def onward(stream_id: UUID, ref: Ref, first: int) -> Iterator[Portion]:
    """The text from `first` on to the end of the last segment, without times; raises what `forward` raises.

    From the second block on, the next segment is fetched and unpacked ahead: whoever looks through a whole log waits
    for nothing then, and whoever finds what he looked for in the first block has cost no more than that one.
    """
    present = _Unpacking(ref, first)
    following: _Unpacking | None = None
    try:
        while True:
            for number, portion in enumerate(present):
                if number == 1:
                    following = _behind(stream_id, present)
                yield portion.between(first)
            following = following or _behind(stream_id, present)
            if following is None:
                return
            present, following = following, None
    finally:
        present.close()
        if following is not None:
            following.close()


class _Unpacking(Iterator[Portion]):
    """The rest of a segment from a line on: fetched at once, then unpacked by the pool, ahead of who reads it."""

    def __init__(self, ref: Ref, first: int) -> None:
        self.ref = ref
        blocks = [block for block in ref.blocks() if block.line + block.lines > first - ref.first_line]
        unpack = _fetched(ref, blocks, timed=False)
        self._waiting = deque(_pool.submit(unpack, block) for block in blocks)

    def __next__(self) -> Portion:
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft().result()

    def close(self) -> None:
        """What is not begun stays undone."""
        for waiting in self._waiting:
            waiting.cancel()


def _behind(stream_id: UUID, present: _Unpacking) -> _Unpacking | None:
    after = holding(stream_id, present.ref.end)
    return None if after is None else _Unpacking(after, after.first_line)


def backward(ref: Ref, end: int | None, *, timed: bool) -> Iterator[Portion]:
    """The blocks of a segment that begin before line `end`, the last first: one, then two, then four at once."""
    stop = ref.lines if end is None else end - ref.first_line
    wanted, count = [block for block in ref.blocks() if block.line < stop], 1
    while wanted:
        for portion in reversed([*_fetch(ref, wanted[-count:], timed=timed)]):
            yield portion.between(portion.first_line, end)
        wanted, count = wanted[:-count], count * 2


def _fetch(ref: Ref, blocks: list[Block], *, timed: bool) -> Iterator[Portion]:
    """Neighbouring blocks, fetched together; unpacked one by one, or many by two threads, ahead of who reads them."""
    unpack = _fetched(ref, blocks, timed=timed)
    # isal works outside of Python's lock.
    yield from _pool.map(unpack, blocks) if len(blocks) >= _MANY else map(unpack, blocks)


def _fetched(ref: Ref, blocks: list[Block], *, timed: bool) -> Callable[[Block], Portion]:
    """Fetch neighbouring blocks; what unpacks one of them."""
    at = blocks[0].at
    body = _body(ref, at, blocks[-1].stop - at)

    def unpack(block: Block) -> Portion:
        try:
            text = unpack_text(block, body, at)
            times = unpack_times(block, body, at) if timed else b""
        except Damaged as error:
            raise Damaged(f"lines {ref.first_line + block.line} and following: {error}") from error
        return Portion(ref.first_line + block.line, block.lines, ref.first_byte + block.byte, text, times)

    return unpack


def _body(ref: Ref, at: int, size: int) -> bytes:
    if ref.key:
        return objects.shelf().get(ref.key, at=at, size=size)
    found = _stored(ref.pk, at, size)
    if found is None:
        raise Gone("this log has expired")
    return found


def _stored(pk: int, at: int, size: int) -> bytes | None:
    """A part of a body in the database."""
    if connection.vendor == "postgresql":
        # As bytes: as hexadecimal digits, which is Django's way, it costs both sides four times as much.
        connection.ensure_connection()
        plain = connection.Database.Cursor  # type: ignore[attr-defined]  # psycopg's own
        with connection.wrap_database_errors, plain(connection.connection) as cursor:
            cursor.execute(_PART, (at + 1, size, pk), binary=True)
            row = cursor.fetchone()
        return None if row is None else row[0]
    part = Func(F("data"), Value(at + 1), Value(size), function="SUBSTR", output_field=BinaryField())
    found = Segment.objects.filter(pk=pk).annotate(part=part).values_list("part", flat=True).first()
    return None if found is None else bytes(found)


def _refs(stream_id: UUID, last: int | None = None) -> Iterator[Ref]:
    rows: QuerySet[Segment] = Segment.objects.filter(stream_id=stream_id).order_by("-first_line")
    if last is not None:
        rows = rows.filter(first_line__lte=last)
    for row in rows.values_list(*_FIELDS)[:1]:
        yield Ref(*row)
