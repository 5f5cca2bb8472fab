"""Looking through a whole log on the server, a bounded time at a call: by text, by expression, for errors.

Bytes are searched, not decoded lines, and without the sequences that a screen does not show.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from django.core.cache import cache

from portal.core.errors import Corrupt, Gone
from portal.logs.damage import told
from portal.logs.models import Stream
from portal.logs.policy import display_text
from portal.logs.policy.errors import ERRORS
from portal.logs.policy.patterns import Pattern, visible, visible_text
from portal.logs.selectors import expired_words, lines
from portal.logs.store import Damaged, store
from portal.logs.store.portion import lines_in

Direction = Literal["forward", "backward"]
MOST_HITS = 5000
MOST_MARKED = 2500
BUDGET_SECONDS = 0.5
# An expression is given so much at a time, so that the clock is looked at often enough: the more, the quicker it is.
_SLICES = (64 * 1024, 256 * 1024)
_QUICK_SECONDS = 0.01
_NO_LIMIT = 2**62
_CACHED_SECONDS = 24 * 3600

Clock = Callable[[], float]


@dataclass(slots=True)
class Found:
    """What one call has found.

    `hits`: numbers of lines, in the order in which they were met. `count`: how many lines hit, also where no numbers
    were asked for. `next`: the line to go on from; None if all was looked through. `lines`: how many the log had.
    """

    lines: int
    hits: list[int] = field(default_factory=list)
    count: int = 0
    next: int | None = None


@dataclass(slots=True)
class _Look:
    """One pass forwards over lines [first, end)."""

    pattern: Pattern
    first: int
    end: int
    limit: int
    deadline: float | None
    clock: Clock
    found: Found
    slice: int = _SLICES[0]
    looked_at: float = 0.0

    def over(self, stream_id: UUID) -> None:
        reached: tuple[int, bytes] = self.first, b""
        for start, raw in store().scan(stream_id, self.first):
            reached = start, raw
            if start >= self.end:
                return
            # The portion that holds the first line may begin before it.
            before = max(0, self.first - start)
            if self.portion(start + before, _after_lines(visible(raw), before)):
                return
        if reached[0] + lines_in(reached[1]) < self.end:
            raise Damaged(f"the text ends behind line {reached[0]}, the stream before line {self.end}")

    def portion(self, line: int, data: bytes) -> bool:
        """Look through one portion; True once the pass is at its end."""
        # Lines are counted only where a number is asked for: `line` is that of the one at `counted`.
        position = counted = 0
        size = len(data)
        while position < size:
            stop = size if not self.pattern.slow else min(size, _line_end(data, position + self.slice))
            # A slice of its own, which begins a line and so looks to an expression like a text that begins there.
            part, begin = (data, 0) if stop - position == size else (data[position:stop], position)
            while position < stop and 0 <= (at := self.pattern.find(part, position - begin)) < stop - begin:
                at += begin
                line += data.count(b"\n", counted, at)
                if line >= self.end:
                    return True
                self.found.count += 1
                if self.limit:
                    self.found.hits.append(line)
                position = counted = _line_end(data, at)
                line += 1
                if self.limit and len(self.found.hits) >= self.limit:
                    self.found.next = line if line < self.end else None
                    return True
            position, moment = max(position, stop), self.clock()
            self.slice, self.looked_at = _SLICES[moment - self.looked_at < _QUICK_SECONDS], moment
            if self.deadline is not None and moment > self.deadline:
                line += data.count(b"\n", counted, position)
                counted = position
                if line < self.end:
                    self.found.next = line
                    return True
        return False


def search(
    stream: Stream,
    pattern: Pattern,
    *,
    first: int,
    direction: Direction = "forward",
    limit: int = MOST_HITS,
    budget_seconds: float = BUDGET_SECONDS,
    clock: Clock = time.monotonic,
) -> Found:
    """Hits from line `first` on, or from it back to line 1: at most `limit`, for about `budget_seconds`.

    `limit` 0 counts only. Ask again from `next` until it is None. Raises `Gone` once it has expired, `Unavailable`,
    `Corrupt`.
    """
    end, expired_at = Stream.objects.values_list("next_line", "expired_at").get(pk=stream.pk)
    if expired_at is not None:
        stream.refresh_from_db()
        raise Gone(expired_words(stream))
    found = Found(lines=end - 1)
    look = _Look(pattern, max(first, 1), end, limit, clock() + budget_seconds, clock, found)
    with told(stream.pk):
        if direction == "backward":
            _backward(stream.pk, look, top=min(first, end - 1))
        elif first < end:
            look.over(stream.pk)
    return found


def _backward(stream_id: UUID, look: "_Look", *, top: int) -> None:
    """Portion by portion from line `top` back, each looked through forwards."""
    found, limit = look.found, look.limit
    for start, raw in store().scan_back(stream_id, top):
        part = Found(lines=found.lines)
        _Look(look.pattern, start, top + 1, _NO_LIMIT, None, look.clock, part).portion(start, visible(raw))
        hits = part.hits[::-1]
        if limit and len(found.hits) + len(hits) >= limit:
            found.hits += hits[: limit - len(found.hits)]
            found.count = len(found.hits)
            found.next = found.hits[-1] - 1 or None
            return
        found.hits += hits if limit else []
        found.count += part.count
        top = start - 1
        if look.deadline is not None and look.clock() > look.deadline:
            found.next = top or None
            return
    if top > 0:
        raise Damaged(f"the text begins behind line {top}")


def _line_end(data: bytes, position: int) -> int:
    """The position behind the line feed at or after `position`; the end without one."""
    return data.find(b"\n", position) + 1 or len(data)


def _after_lines(data: bytes, lines_: int) -> bytes:
    position = 0
    for _ in range(lines_):
        position = _line_end(data, position)
    return data[position:]


def marks(stream: Stream, pattern: Pattern, *, first: int, end: int) -> dict[int, list[tuple[int, int]]]:
    """For the lines of [first, end) that hit: where, in characters of what a screen shows. At most `MOST_MARKED`."""
    page = lines(stream, first, min(end - first, MOST_MARKED))
    found = {}
    for line in page.lines:
        spans = pattern.spans(visible_text(display_text(line.text)))
        if spans:
            found[line.n] = spans
    return found


def opening_line(stream: Stream, *, budget_seconds: float = 0.3) -> int | None:
    """The line at which the log of something that failed is opened: its first error, None without one.

    In a log too long to look through in that time: the last error near its end. Kept once the log is complete. None
    too where a part of its stored copy is damaged: the rest may be read all the same.
    """
    key = f"log-opening:{stream.pk}:{stream.next_line}"
    if stream.expired_at is not None:
        return None
    kept = cache.get(key) if stream.completed_at else None
    if kept is not None:
        return kept or None
    try:
        found = search(stream, ERRORS, first=1, limit=1, budget_seconds=budget_seconds)
        if not found.hits and found.next is not None:
            last = stream.next_line - 1
            found = search(stream, ERRORS, first=last, direction="backward", limit=1, budget_seconds=budget_seconds)
    except Corrupt:
        return None
    line = found.hits[0] if found.hits else None
    if stream.completed_at:
        cache.set(key, line or 0, _CACHED_SECONDS)
    return line
