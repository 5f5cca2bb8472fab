"""All logs of a job as one, in the order of time, read by a cursor: the next line of every stream.

A line is given once whatever the times say, because the cursor counts lines; times only decide what stands beside what.
"""

import heapq
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from portal.core.errors import Problem, Refused
from portal.logs.damage import told
from portal.logs.models import Stream
from portal.logs.policy import decode, gap_words
from portal.logs.policy.errors import level_of
from portal.logs.selectors import expired_words, gaps_of
from portal.logs.store import Damaged, store

MOST_LINES = 2000
MOST_STREAMS = 512
Level = Literal["all", "warning", "error"]
_BUDGET_SECONDS = 1.0
_BYTES = 256 * 1024
_LEAST = 20
# A cursor begins with its form, so that one of another release is refused and not misread.
_FORM = b"\x01"
# Bytes of a stream's id that name it in a cursor; with 512 long logs it still fits into an address.
_NAMED = 4
_CURSOR = re.compile(r"[0-9A-Za-z_-]{2,8000}")


class MergedLine(NamedTuple):
    """`stream`: its place in the list that was asked for; `gaps`: what is missing before it in its own log."""

    stream: int
    n: int
    time_ns: int
    text: str
    level: str
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Merged:
    """`before`, `after`: cursors of what comes next in either direction. `complete`: nothing will ever follow.

    `missing`: at the end, what is missing behind the last line of a log, or why all of it is: (place of the stream,
    words).
    """

    lines: Sequence[MergedLine]
    missing: Sequence[tuple[int, str]]
    before: str
    after: str
    at_start: bool
    at_end: bool
    complete: bool


def in_order(streams: Iterable[Stream]) -> list[Stream]:
    """A stream that begins later comes later."""
    return sorted(streams, key=lambda stream: (stream.created_at, stream.pk))


def pack(places: Sequence[int], streams: Sequence[Stream]) -> str:
    """A cursor: of each stream the first eight hexadecimal digits of its id, and its next line.

    By name and not by place: what was made first may be seen last, and must not move the others' lines.
    """
    entries = [stream.pk.bytes[:_NAMED] + _varint(place) for stream, place in zip(streams, places, strict=True)]
    return urlsafe_b64encode(_FORM + b"".join(entries)).decode().rstrip("=")


def unpack(cursor: str, streams: Sequence[Stream]) -> list[int]:
    """The next line of each stream; 1 for those that it does not name. Raises `Refused`."""
    named: dict[bytes, deque[int]] = defaultdict(deque)
    try:
        data = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        if not _CURSOR.fullmatch(cursor) or not data.startswith(_FORM):
            raise ValueError("another form")
        at = len(_FORM)
        while at < len(data):
            name, at = data[at : at + _NAMED], at + _NAMED
            place, at = _number(data, at)
            named[name].append(place)
    except ValueError:
        raise Refused(Problem("cursor", "This is no cursor of these logs; begin without one.", "invalid")) from None
    found = []
    for stream in streams:
        # Two ids that begin alike stand in the order of the streams, as they were named.
        places = named.get(stream.pk.bytes[:_NAMED])
        found.append(min(places.popleft() if places else 1, stream.next_line))
    return found


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last have their highest bit set."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Such a number of 1 or more, and the position behind it. Raises `ValueError`."""
    value = 0
    for shift in range(0, 63, 7):
        byte = data[at + shift // 7] if at + shift // 7 < len(data) else 128
        value |= (byte & 127) << shift
        if byte < 128:
            if value < 1:
                break
            return value, at + shift // 7 + 1
    raise ValueError("no number of a line")


def merged(
    streams: Sequence[Stream],
    *,
    cursor: str | None,
    limit: int,
    backward: bool = False,
    level: Level = "all",
    clock: Callable[[], float] = time.monotonic,
) -> Merged:
    """At most `limit` lines behind the cursor, or `backward` before it; without one from the start, or from the end.

    With a `level` there may be fewer although more follow: looking takes a second at most, once the logs are open; a
    line before which something is missing is there at every level.
    Raises `Refused`, `Unavailable`, `Corrupt`, `Gone` if a text expires meanwhile.
    """
    ends = [stream.next_line for stream in streams]
    start = unpack(cursor, streams) if cursor is not None else (ends if backward else [1] * len(streams))
    places = list(start)
    deadline: float | None = None
    found: list[MergedLine] = []
    share = max(_LEAST, 2 * limit // max(len(streams), 1))
    gaps = _gaps(streams)
    source = _backward(streams, places, share) if backward else _forward(streams, places, ends, share)
    for each in source:
        line = each._replace(gaps=tuple(gaps.get((each.stream, each.n), ())))
        if level == "all" or line.level in {"error", level} or line.gaps:
            found.append(line)
        if len(found) >= limit:
            break
        if level == "all":
            continue
        # Opening hundreds of logs takes a while by itself, and no answer may be spent on that alone.
        if deadline is None:
            deadline = clock() + _BUDGET_SECONDS
        if clock() > deadline:
            break
    if backward:
        found.reverse()
    before, after = (places, start) if backward else (start, places)
    at_end = list(after) == ends
    return Merged(
        lines=found,
        missing=[(at, words) for at, end in enumerate(ends) for words in gaps.get((at, end), ()) if at_end],
        before=pack(before, streams),
        after=pack(after, streams),
        at_start=all(place == 1 for place in before),
        at_end=at_end,
        complete=at_end and all(stream.completed_at is not None for stream in streams),
    )


def _gaps(streams: Sequence[Stream]) -> dict[tuple[int, int], list[str]]:
    """What is missing, in words, by the place of the stream and the line before which it is. No query if prefetched."""
    found: dict[tuple[int, int], list[str]] = defaultdict(list)
    for at, stream in enumerate(streams):
        if stream.expired_at is not None:
            found[at, stream.next_line].append(expired_words(stream))
            continue
        for gap in gaps_of(stream):
            found[at, gap.before_line].append(gap_words(gap))
    return found


def _forward(streams: Sequence[Stream], places: list[int], ends: Sequence[int], share: int) -> Iterator[MergedLine]:
    """Lines from `places` on, which move along."""

    def ahead(index: int) -> Iterator[tuple[int, int, MergedLine]]:
        stream, position, latest = streams[index], places[index], 0
        while position < ends[index] and stream.expired_at is None:
            lines = _read(stream, index, position, min(share, ends[index] - position))
            for line in lines:
                # A time that goes back does not take its line in front of lines that were written before it.
                latest = max(latest, line.time_ns)
                yield latest, index, line
            position += len(lines)

    for _, index, line in heapq.merge(*[ahead(index) for index in range(len(streams))], key=_key):
        places[index] = line.n + 1
        yield line
    # An expired text is passed over as a whole.
    places[:] = list(ends)


def _backward(streams: Sequence[Stream], places: list[int], share: int) -> Iterator[MergedLine]:
    """Lines before `places`, the newest first."""

    def back(index: int) -> Iterator[tuple[int, int, MergedLine]]:
        stream, end, earliest = streams[index], places[index], 2**63
        while end > 1 and stream.expired_at is None:
            low = max(1, end - share)
            lines = _read(stream, index, low, end - low)
            while lines[-1].n < end - 1:  # long lines fill a page early
                lines += _read(stream, index, lines[-1].n + 1, end - 1 - lines[-1].n)
            for line in reversed(lines):
                earliest = min(earliest, line.time_ns)
                yield -earliest, -index, line
            end = low

    for _, index, line in heapq.merge(*[back(index) for index in range(len(streams))], key=_key):
        places[-index] = line.n
        yield line
    places[:] = [1] * len(places)


def _key(entry: tuple[int, int, MergedLine]) -> tuple[int, int]:
    return entry[0], entry[1]


def _read(stream: Stream, index: int, first: int, limit: int) -> list[MergedLine]:
    with told(stream.pk):
        records = store().read(stream.pk, first=first, limit=limit, max_bytes=_BYTES, sealed_line=stream.sealed_line)
        if not records:
            raise Damaged(f"line {first} of stream {stream.pk} is not in the store")
    found = []
    for n, record in enumerate(records, first):
        text = decode(record.text)
        found.append(MergedLine(index, n, record.time_ns, text, level_of(text)))
    return found
