"""Reading sealed lines: which segment, which blocks of it, and no more than those."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

from django.db.models import BinaryField, F, Func, QuerySet, Value

from portal.core.errors import Gone
from portal.logs.models import Segment
from portal.logs.store import objects
from portal.logs.store.blocks import Block, Damaged, read_index, unpack_text, unpack_times
from portal.logs.store.portion import Portion

_MANY = 4
# Its threads do nothing but unpack: they never touch the database, nor wait for anything.
_pool = ThreadPoolExecutor(2, thread_name_prefix="unpack")
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
    at = blocks[0].at
    body = _body(ref, at, blocks[-1].stop - at)

    def unpack(block: Block) -> Portion:
        try:
            text = unpack_text(block, body, at)
            times = unpack_times(block, body, at) if timed else b""
        except Damaged as error:
            raise Damaged(f"lines {ref.first_line + block.line} and following: {error}") from error
        return Portion(ref.first_line + block.line, block.lines, ref.first_byte + block.byte, text, times)

    # zlib works outside of Python's lock: whoever looks through a whole log gets its text twice as fast.
    yield from _pool.map(unpack, blocks) if len(blocks) >= _MANY else map(unpack, blocks)


def _body(ref: Ref, at: int, size: int) -> bytes:
    if ref.key:
        return objects.shelf().get(ref.key, at=at, size=size)
    part = Func(F("data"), Value(at + 1), Value(size), function="SUBSTR", output_field=BinaryField())
    found = Segment.objects.filter(pk=ref.pk).annotate(part=part).values_list("part", flat=True).first()
    if found is None:
        raise Gone("this log has expired")
    return bytes(found)


def _refs(stream_id: UUID, last: int | None = None) -> Iterator[Ref]:
    rows: QuerySet[Segment] = Segment.objects.filter(stream_id=stream_id).order_by("-first_line")
    if last is not None:
        rows = rows.filter(first_line__lte=last)
    for row in rows.values_list(*_FIELDS)[:1]:
        yield Ref(*row)
