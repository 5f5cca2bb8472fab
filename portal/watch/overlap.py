"""Where a log that is read again goes on after what is stored. Pure.

A resumed read sends whole seconds again, a read after the end the whole file, and a stream that stays open may send a
file twice (`seams`). "Newer than the last" would lose lines that share a time stamp and "skip as many as are stored" is
wrong after a rotation, so the records themselves are compared, in order.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from portal.logs.models import Cause
from portal.logs.specs import Batch, Loss, Record

# Text of unknown lines that is kept until it is clear whether they belong behind what is stored.
HELD_BYTES = 4 * 1024 * 1024


class Stored(NamedTuple):
    """The last lines of a stream from a place on: a key for each, the number of the first, and of what times."""

    keys: "array[int]"
    first_line: int
    # Of the line before the first (None: there is none), and the greatest of all of them.
    before_ns: int | None
    last_ns: int


def key_of(record: Record) -> int:
    """Sixty-four bits that name a time and a text, in this process only."""
    return hash(record) & 0xFFFF_FFFF_FFFF_FFFF


class Overlap:
    """Drops what is stored from the start of a read that contains it again.

    `cause`: why lines are missing if the read does not contain the last stored line. `missing` collects what is
    missing; the caller takes it out.
    """

    def __init__(self, stored: Stored, *, cause: Cause = Cause.ROTATED) -> None:
        self._stored, self._cause = stored, cause
        # How far the read has repeated the stored lines; the greatest time of a repeated line.
        self._at = 0
        self._reached_ns = stored.before_ns
        # What the read has repeated, to find out whether it is the end of what is stored.
        self._seen = array("Q")
        self._matched = False
        self._known: set[int] | None = None
        # Lines that are not stored although they are not newer than what is; and how many were too many to keep.
        self._held: list[Record] = []
        self._held_bytes = self._dropped = self._dropped_bytes = 0
        self.missing: list[Loss] = []
        self.settled = not stored.keys
        # It was decided that lines are missing behind the last stored one.
        self.unanchored = False
        # A hole that may be none, and the only record in it: with it the read begins, perhaps in the middle of a line.
        self.doubtful: tuple[Loss, Record] | None = None

    @property
    def end(self) -> int:
        """Number of the line behind the stored ones."""
        return self._stored.first_line + len(self._stored.keys)

    def new(self, batch: Batch) -> Batch:
        """Those of the next records that are not stored yet and belong behind what is."""
        if self.settled:
            return batch
        keys = self._stored.keys
        for index, record in enumerate(batch):
            key = key_of(record)
            if key != keys[self._at] and not self._find(key):
                if record.time_ns <= self._stored.last_ns:
                    self._hold(record)
                    continue
                return Batch.of(self._decide(record.time_ns), trusted=True) + batch[index:]
            if self._held or self._dropped:
                self._declare_hole(record.time_ns)
            self._seen.append(key)
            self._at += 1
            self._matched = True
            self._reached_ns = max(self._reached_ns or 0, record.time_ns)
            if self._at == len(keys):
                self.settled = True
                return batch[index + 1 :]
        return batch[:0]

    def finish(self, *, whole: bool) -> Batch:
        """The read has come to its end. `whole`: and nothing can follow it."""
        if self.settled or not whole:
            return Batch.of(())
        if self._held or self._dropped or not self._matched:
            return Batch.of(self._decide(None), trusted=True)
        self.settled = True
        return Batch.of(())

    def _find(self, key: int) -> bool:
        """Whether the stored lines go on with this one somewhere else; then that is where they go on."""
        if self._known is None:
            self._known = set(self._stored.keys)
        if key not in self._known:
            return False
        try:
            self._at = self._stored.keys.index(key, self._at)
        except ValueError:
            # Only further up: the read has begun to repeat once more.
            self._at = self._stored.keys.index(key)
            self._forget_held()
            del self._seen[:]
        return True

    def _hold(self, record: Record) -> None:
        if self._held_bytes + len(record.text) > HELD_BYTES:
            # So much that is older than what is stored lies in a hole, not at the end.
            self._dropped += len(self._held) + 1
            self._dropped_bytes += self._held_bytes + len(record.text)
            self._held, self._held_bytes = [], 0
            return
        self._held.append(record)
        self._held_bytes += len(record.text)

    def _forget_held(self) -> None:
        self._held, self._held_bytes, self._dropped, self._dropped_bytes = [], 0, 0, 0

    def _declare_hole(self, until_ns: int) -> None:
        """Stored lines follow on lines that are not stored: those were left out, and their place is taken."""
        exact = self._matched
        loss = Loss(
            before_line=self._stored.first_line + self._at,
            cause=Cause.SKIPPED,
            after_ns=self._reached_ns,
            until_ns=until_ns,
            lines=len(self._held) + self._dropped if exact else None,
            bytes=self._held_bytes + self._dropped_bytes if exact else None,
        )
        self.missing.append(loss)
        if not exact and len(self._held) == 1 and not self._dropped:
            self.doubtful = loss, self._held[0]
        self._forget_held()

    def _decide(self, next_ns: int | None) -> Sequence[Record]:
        """A line newer than all that is stored has come (None: nothing more), before the last stored one has."""
        self.settled = True
        held, dropped = self._held, self._dropped
        self._held = []
        repeated = longest_suffix_as_prefix(self._stored.keys, self._seen)
        if self._seen and repeated == len(self._seen) and not dropped:
            return held
        self.unanchored = True
        until = held[0].time_ns if held and not dropped else next_ns
        self.missing.append(Loss(self.end, self._cause, after_ns=self._stored.last_ns, until_ns=until))
        return held


def longest_suffix_as_prefix(stored: "array[int]", seen: "array[int]") -> int:
    """Length of the longest end of `stored` that is also the beginning of `seen`. Linear (prefix function)."""
    text = [*seen, -1, *stored[-len(seen) :]] if seen else []
    borders = [0] * len(text)
    for position in range(1, len(text)):
        length = borders[position - 1]
        while length and text[position] != text[length]:
            length = borders[length - 1]
        borders[position] = length + (text[position] == text[length])
    return borders[-1] if borders else 0
