"""What a collector on the node delivers: records and their places in files, at least once, in any order.

A collector reads the files of the container runtime, rotated ones too, and repeats what was not acknowledged. A record
is known by its time stamp *and* its offset: offsets begin anew in each file, and many records may share a time. Path
and offset would not do, because a file changes its name when it is rotated.

Records are numbered as soon as it is certain that nothing comes before them: because they follow the last one in its
file byte by byte, or because what else may be under way would have come (`settling.py`). The order within a file is
that of its bytes: two pipes of a container are stamped a little apart.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from portal.logs.policy.lines import LINE_BYTES, cut, pieces
from portal.logs.policy.stamps import NANO, stamp
from portal.logs.specs import Record

# How far apart two pipes of a container may be stamped.
SKEW_NS = NANO
# And how far they mostly are.
JITTER_NS = 20_000_000
# A span is ended after so many bytes, so that its times are close together: a record of the next file, which begins at
# the same offsets, is then never taken for one of this file. Beyond so many spans, old neighbours are joined.
SPAN_BYTES, MOST_SPANS = 64 * 1024, 2_000
# So many of the last spans are looked at for the newest.
RECENT_SPANS = 8


class Seen(NamedTuple):
    """One record of a container's log file.

    `time_ns`: the runtime's time stamp. `offset`, `end`: its bytes in the file. `pipe`: "stdout" or "stderr". `whole`:
    it ends its line; else the next record of the pipe goes on with it. `text`: without line feed.
    """

    time_ns: int
    offset: int
    end: int
    pipe: str
    whole: bool
    text: bytes


class Span(NamedTuple):
    """A stretch of one file whose records are all numbered: the least and the greatest time, bytes from and to."""

    first_ns: int
    offset: int
    last_ns: int
    end: int

    def covers(self, record: Seen) -> bool:
        return self.offset <= record.offset < self.end and self.first_ns <= record.time_ns <= self.last_ns


class OpenLine(NamedTuple):
    """The beginning of a line that has not ended."""

    time_ns: int
    text: bytes


class Hole(NamedTuple):
    """Bytes of a file that never came: before which of the taken records, and between which times (None: not known)."""

    before: int
    after_ns: int | None
    until_ns: int
    bytes: int


@dataclass
class Taken:
    """Lines in their order, holes between them, and what must wait."""

    records: list[Record] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    rest: list[Seen] = field(default_factory=list)


class Book:
    """What is known of one stream's files. `spans` and `open_lines` are all its memory."""

    def __init__(self, spans: Iterable[Span] = (), open_lines: dict[str, OpenLine] | None = None) -> None:
        self.spans = list(spans)
        self.open_lines = dict(open_lines or {})

    def take(
        self,
        arrivals: Iterable[Seen],
        *,
        waited: Callable[[Seen], bool],
        took: Callable[[Seen], None] = lambda _: None,
        joins: Callable[[Seen, int], bool] = lambda *_: True,
    ) -> Taken:
        """Number what can be numbered.

        `waited`: whether nothing older than this record, which follows no other, can come any more. `took`: told of
        each record that is numbered. `joins`: whether this record, which begins where a file has ended at this time,
        is surely of that file.
        """
        newest_ns = max((span.last_ns for span in self.spans), default=-1)
        fresh = (each for each in arrivals if each.time_ns > newest_ns or not self._is_numbered(each))
        pile = _Pile({(each.time_ns, each.offset): each for each in fresh}.values())
        taken = Taken()
        while True:
            record = self._following(pile)
            if record is not None:
                if not joins(record, self.spans[-1].last_ns):
                    break
            else:
                record = pile.beginning()
                if record is None or not waited(record):
                    break
                self._begin(record, taken)
            pile.remove(record)
            self._add(record, taken)
            took(record)
        taken.rest = pile.left()
        self._tidy()
        return taken

    def finish(self) -> list[Record]:
        """The container has ended and all is here: lines that never ended are the last ones, without a line feed."""
        left = sorted(self.open_lines.values())
        self.open_lines = {}
        return [Record(line.time_ns, line.text) for line in left if line.text]

    def _is_numbered(self, record: Seen) -> bool:
        return any(span.covers(record) for span in reversed(self.spans))

    def _tidy(self) -> None:
        if len(self.spans) > MOST_SPANS:
            old = len(self.spans) - MOST_SPANS // 2
            self.spans = [*_joined(self.spans[:old]), *self.spans[old:]]

    def _following(self, pile: "_Pile") -> Seen | None:
        """The next record of the present file: the last one, or the newest, which a late stretch has interrupted."""
        if not self.spans:
            return None
        record = pile.following(self.spans[-1])
        if record is None:
            newest = max(self.spans[-RECENT_SPANS:], key=lambda span: span.last_ns)
            record = pile.following(newest) if newest is not self.spans[-1] else None
            if record is not None:
                self.spans.remove(newest)
                self.spans.append(newest)
        return record

    def _begin(self, record: Seen, taken: Taken) -> None:
        """A new file, or one of which something is missing."""
        last = self.spans[-1] if self.spans else None
        if record.offset > 0 and (last is None or record.time_ns >= last.last_ns):
            # How much, if it is the last file of which it is missing.
            since = last.end if last is not None and last.end < record.offset else 0
            after_ns = None if last is None else last.last_ns
            taken.holes.append(Hole(len(taken.records), after_ns, record.time_ns, record.offset - since))
        self.spans.append(Span(record.time_ns, record.offset, record.time_ns, record.offset))

    def _add(self, record: Seen, taken: Taken) -> None:
        last = self.spans[-1] if self.spans else None
        if last is None or last.end - last.offset >= SPAN_BYTES:
            self.spans.append(Span(record.time_ns, record.offset, record.time_ns, record.end))
        else:
            first_ns, last_ns = min(last.first_ns, record.time_ns), max(last.last_ns, record.time_ns)
            self.spans[-1] = Span(first_ns, last.offset, last_ns, record.end)
        begun = self.open_lines.pop(record.pipe, None)
        time_ns, text = (record.time_ns, record.text) if begun is None else (begun.time_ns, begun.text + record.text)
        if record.whole:
            taken.records.extend(Record(time_ns, piece) for piece in pieces(text + b"\n"))
            return
        while len(text) > LINE_BYTES:
            end = cut(text)
            taken.records.append(Record(time_ns, text[:end]))
            text = text[end:]
        self.open_lines[record.pipe] = OpenLine(time_ns, text)


class _Pile:
    """Records that wait, found by their place and by their time."""

    def __init__(self, records: Iterable[Seen]) -> None:
        # The earliest first; those that were taken stay in it, and are passed over.
        self._by_time = sorted(records)
        self._by_offset: dict[int, list[Seen]] = defaultdict(list)
        self._ends: dict[int, list[Seen]] = defaultdict(list)
        self._taken: set[tuple[int, int]] = set()
        self._from = 0
        for record in self._by_time:
            self._by_offset[record.offset].append(record)
            self._ends[record.end].append(record)

    def following(self, span: Span) -> Seen | None:
        """The record that goes on where a span ends; None if the one at this place goes on with another file.

        Lines of equal length end at the same places in each file.
        """
        earliest_ns = span.last_ns - SKEW_NS
        found = next((each for each in self._by_offset.get(span.end, ()) if each.time_ns >= earliest_ns), None)
        if found is None:
            return None
        if any(self._newer_file(span, found)):
            return None
        apart = abs(found.time_ns - span.last_ns)
        nearer = (each for each in self._ends[span.end] if abs(found.time_ns - each.time_ns) < apart)
        return None if any(each.time_ns <= found.time_ns and each != found for each in nearer) else found

    def _newer_file(self, span: Span, record: Seen) -> Iterator[bool]:
        """Whether another file had begun before a record: by those between, which lie before the end of the span."""
        start = bisect_right(self._by_time, span.last_ns, key=lambda each: each.time_ns)
        for position in range(start, len(self._by_time)):
            between = self._by_time[position]
            if between.time_ns >= record.time_ns - JITTER_NS:
                return
            yield between.offset < span.end and (between.time_ns, between.offset) not in self._taken

    def beginning(self) -> Seen | None:
        """The earliest record that follows none of those that wait."""
        for position in range(self._from, len(self._by_time)):
            record = self._by_time[position]
            if (record.time_ns, record.offset) in self._taken:
                if position == self._from:
                    self._from += 1
                continue
            before = self._ends.get(record.offset, ())
            if not any(abs(each.time_ns - record.time_ns) <= SKEW_NS and each != record for each in before):
                return record
        return None

    def remove(self, record: Seen) -> None:
        self._by_offset[record.offset].remove(record)
        self._ends[record.end].remove(record)
        self._taken.add((record.time_ns, record.offset))

    def left(self) -> list[Seen]:
        return [record for record in self._by_time if (record.time_ns, record.offset) not in self._taken]


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Neighbours of the same file as one."""
    found: list[Span] = []
    for span in spans:
        last = found[-1] if found else None
        if last is not None and last.end == span.offset and last.last_ns <= span.first_ns + SKEW_NS:
            found[-1] = Span(min(last.first_ns, span.first_ns), last.offset, max(last.last_ns, span.last_ns), span.end)
        else:
            found.append(span)
    return found


def parse_cri(line: bytes, *, offset: int) -> Seen | None:
    """A line of a runtime's log file, without its line feed: `<time> stdout F <text>`. None for anything else."""
    head = stamp(line)
    if head is None:
        return None
    time_ns, length = head
    words: Sequence[bytes] = line[length:].split(b" ", 2)
    if len(words) != 3 or words[0] not in (b"stdout", b"stderr"):
        return None
    # Tags are separated by colons; the first says whether the line goes on.
    whole = words[1].split(b":")[0] == b"F"
    return Seen(time_ns, offset, offset + len(line) + 1, words[0].decode(), whole, words[2])
