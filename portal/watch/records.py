"""From the bytes of a log endpoint to records, however the bytes are cut on their way. Pure.

The endpoint sends `<RFC 3339 time> <text>\\n` for each line. Three things are less plain:

- A runtime stores a long line in fragments; the endpoint joins them behind the time of the first one. When a resumed
  read skips that first fragment, the rest comes *without* a time: it belongs to a line before the resumption.
- A line that has not ended yet arrives without its line feed, and goes on in a later read.
- A line may be longer than anybody wants to hold; it is cut by `logs.policy`, by its content only.
"""

import codecs
from array import array
from operator import add

from portal.logs.policy import LINE_BYTES, cut, pieces
from portal.logs.policy.stamps import NANO, second_of, stamp
from portal.logs.specs import Batch, Record

# Longer than any time stamp.
_STAMP_BYTES = 64


def plain(lines: list[bytes]) -> Batch | None:
    """These lines, given without their line feeds, if all of them are short and begin with a whole time; else None.

    The way that nearly every byte takes: a few passes in C instead of a call for each line.
    """
    if max(map(len, lines)) > LINE_BYTES or [line[29:31] for line in lines].count(b"Z ") != len(lines):
        return None
    moments = [line[:20] for line in lines]
    nanos = [line[20:29] for line in lines]
    if not all(map(bytes.isdigit, nanos)):
        return None
    starts: dict[bytes, int] = {}
    for moment in set(moments):
        second = second_of(moment[:19], b"Z")
        if second is None or moment[19:] != b".":
            return None
        starts[moment] = second * NANO
    times = array("q", map(add, map(starts.__getitem__, moments), map(int, nanos)))
    return Batch(times, [line[31:] + b"\n" for line in lines], trusted=True)


class Parser:
    """One connection's bytes. `resumed`: the read began at a time, so a first fragment may have been skipped."""

    def __init__(self, *, resumed: bool, last_ns: int | None) -> None:
        self._rest = b""
        # Time of a long line of which pieces were given already; `_rest` then holds no time stamp.
        self._time: int | None = None
        self._last = last_ns or 0
        self._fragment_allowed = resumed
        self._dropping = False

    def feed(self, data: bytes) -> Batch:
        """The lines that these bytes complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        found: list[Record] = []
        if lines and (self._time is not None or self._dropping or self._fragment_allowed):
            # The first line may be the rest of another; behind it everything is plain again.
            self._line(lines.pop(0) + b"\n", found)
        batch = plain(lines) if lines else None
        if batch is None:
            for line in lines:
                self._line(line + b"\n", found)
        else:
            self._last, self._fragment_allowed = batch.times[-1], False
        long: list[Record] = []
        self._cut_rest(long)
        if batch is None:
            return Batch.of(found + long, trusted=True)
        return Batch.of(found, trusted=True) + batch + Batch.of(long, trusted=True) if found or long else batch

    def finish(self) -> Batch:
        """The last line, which will never get a line feed because its container has ended."""
        found: list[Record] = []
        if self._rest:
            self._line(self._rest, found)
        self._rest = b""
        return Batch.of(found, trusted=True)

    @property
    def open_text(self) -> str:
        """What the unfinished line says so far; a character that is not whole yet is left out."""
        body = self._rest
        if self._dropping:
            return ""
        if self._time is None:
            head = stamp(body)
            if head is None:
                return ""
            body = body[head[1] :]
        return codecs.getincrementaldecoder("utf-8")("replace").decode(body)

    def _line(self, line: bytes, found: list[Record]) -> None:
        if self._time is not None:
            found.extend(Record(self._time, piece) for piece in pieces(line))
            self._time = None
            return
        head = stamp(line)
        if head is not None:
            self._last, self._fragment_allowed = head[0], False
            line = line[head[1] :]
        elif self._dropping or self._fragment_allowed:
            self._dropping = False
            return
        if len(line) <= LINE_BYTES:
            if line:
                found.append(Record(self._last, line))
        else:
            found.extend(Record(self._last, piece) for piece in pieces(line))

    def _cut_rest(self, found: list[Record]) -> None:
        """Give what can be given of a line that is too long already, so that nobody holds all of it."""
        if self._dropping:
            self._rest = b"."[: len(self._rest)]
            return
        if len(self._rest) <= LINE_BYTES + _STAMP_BYTES:
            return
        if self._time is None:
            head = stamp(self._rest)
            if head is None and self._fragment_allowed:
                self._dropping = True
                self._cut_rest(found)
                return
            self._time, length = (self._last, 0) if head is None else head
            self._last, self._fragment_allowed = self._time, False
            self._rest = self._rest[length:]
        while len(self._rest) > LINE_BYTES:
            end = cut(self._rest)
            found.append(Record(self._time, self._rest[:end]))
            self._rest = self._rest[end:]
