"""What a stream holds already, as keys to compare a read with. In a desk's thread, for all of it asks the database."""

from array import array
from collections.abc import Sequence
from uuid import UUID

from portal.logs import selectors
from portal.logs.policy.stamps import NANO
from portal.logs.specs import Batch, Record
from portal.watch.overlap import Stored, key_of

# Two pipes of one container are stamped apart: a record that is a little late must not fall before the resumption.
SLACK_NS = NANO
_FIRST = 5000


class _Tail:
    """Keys of the last lines, gathered from the last one backwards; `cut` forgets those before a place."""

    def __init__(self, next_line: int) -> None:
        self._next_line = next_line
        self._keys = array("Q")
        # The greatest time of all that was added.
        self.last_ns = 0
        self._kept = self._kept_last = 0
        self._before: int | None = None

    def add(self, record: Record) -> None:
        if len(self._keys) == self._kept:
            self._before = record.time_ns
        self._keys.append(key_of(record))
        self.last_ns = max(self.last_ns, record.time_ns)

    def keep(self) -> None:
        """The last lines begin with the record added just now, as far as is known."""
        self._kept, self._kept_last, self._before = len(self._keys), self.last_ns, None

    def stored(self) -> Stored:
        keys = self._keys[: self._kept]
        keys.reverse()
        return Stored(keys, self._next_line - len(keys), self._before, self._kept_last)


def since(stream_id: UUID, time_ns: int, *, next_line: int, most_bytes: int | None = None) -> tuple[Stored, int]:
    """The lines from the first one of this time or later on, and the time from which a read must begin to match them.

    With `most_bytes`, fewer if they are longer than that in all; the time is then later, but not behind the last line:
    a read that begins there says nothing of what is stored.
    """
    tail, size = _Tail(next_line), 0
    for record in selectors.newest_first(stream_id):
        if record.time_ns < time_ns - SLACK_NS:
            tail.add(record)
            break
        next_second = (record.time_ns // SLACK_NS + 1) * SLACK_NS
        if most_bytes is not None and size > most_bytes and next_second <= tail.last_ns:
            # What was read before this one stays.
            return tail.stored(), next_second
        tail.add(record)
        size += len(record.text)
        if record.time_ns >= time_ns:
            tail.keep()
    return tail.stored(), time_ns


def behind(
    stream_id: UUID, candidates: Sequence[Record], *, next_line: int, most_bytes: int | None = None
) -> tuple[Stored, int] | None:
    """The lines from a candidate on, and which one it is; None if none of them is stored.

    Of equal lines the first one counts: a file that is sent again is sent from its beginning. With `most_bytes`, times
    do not end the search but this many bytes do.
    """
    tail, found = _Tail(next_line), None
    wanted = {candidate: index for index, candidate in reversed(list(enumerate(candidates)))}
    oldest = min(candidate.time_ns for candidate in candidates) - SLACK_NS
    size = 0
    for record in selectors.newest_first(stream_id):
        tail.add(record)
        if record in wanted:
            found = wanted[record] if found is None else min(found, wanted[record])
            tail.keep()
        elif (record.time_ns < oldest) if most_bytes is None else (size > most_bytes):
            break
        size += len(record.text)
    return None if found is None else (tail.stored(), found)


def beginning(stream_id: UUID) -> Batch:
    """The first lines, some thousands of them."""
    return Batch.of(selectors.records(stream_id, 1, _FIRST))


def is_end_of_line(stream_id: UUID, number: int, text: bytes) -> bool:
    """Whether a stored line ends with this text: the runtime may tear a line when it changes files."""
    return any(record.text.endswith(text) for record in selectors.records(stream_id, number, 1))
