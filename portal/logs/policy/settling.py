"""When it is certain that nothing older than a record is still under way. Pure.

A collector sends what it has read in the order in which it read it, with one exception: when it starts again after it
was killed, what was under way comes behind all that its predecessor had read. So once a record has come that was read
by the very process that sent it, all that was read before is here; and what is missing then is really missing. Waiting
for a time would be wrong: portal, collector and the way between them may be away, or late, for as long as they like.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from portal.logs.policy.collected import Seen
from portal.logs.policy.stamps import NANO

# How much later something must have been read: than a record that begins a file, beside which the end of the file
# before it is read; and than a record inside a file, before which bytes are missing.
NEW_FILE_NS, HOLE_NS = 2 * NANO, 10 * NANO
# No container writes faster. What comes after a shorter pause than it takes to write as much again goes on with a file.
FASTEST_BYTES_PER_NS = 0.1
# A file is also begun after so long a silence: its container may write nothing for hours.
SILENCE_NS = 60 * NANO
# A container's first record that comes so soon after it was written is the very first: no file can have been full.
FRESH_NS, FIRST_NS = 3 * NANO, 2 * NANO


class Reading(NamedTuple):
    """When a record came, and when it had been read (or a little later). Nanoseconds since the epoch."""

    came_ns: int
    read_ns: int


@dataclass
class Settling:
    """What is known of how far a collector has come with one stream; times in nanoseconds since the epoch.

    `readings`: of each record, by its time and offset. `begun_ns`: when the first delivery of the process that sends
    now came; 0: it had no predecessor. `sure_ns`: when the newest record was read that this process has sent.
    `heard_ns`: when something came last. `grown_ns`: when the newest of the numbered records had been read. `blank`:
    nothing is numbered yet. `hurry`: nothing more is waited for.
    """

    readings: Mapping[tuple[int, int], Reading]
    begun_ns: int
    sure_ns: int
    heard_ns: int
    grown_ns: int
    now_ns: int
    blank: bool = False
    hurry: bool = False

    def waited(self, record: Seen) -> bool:
        """Whether a record that follows no other may be numbered."""
        if self.hurry:
            return True
        if record.offset > 0:
            return self.sure_ns >= self._since(record) + HOLE_NS
        came_ns = self.readings[record.time_ns, record.offset].came_ns
        is_first = self.blank and self.begun_ns == 0 and came_ns - record.time_ns <= FRESH_NS
        return (is_first and self.now_ns >= came_ns + FIRST_NS) or self._is_sure(record)

    def joins(self, record: Seen, last_ns: int) -> bool:
        """Whether a record that begins where a file has ended so far is of that file.

        In files with lines of one length it may be of the next one, of which the beginning was under way at a kill.
        """
        if self.hurry or record.time_ns - last_ns < record.offset / FASTEST_BYTES_PER_NS:
            return True
        return self.readings[record.time_ns, record.offset].read_ns >= self.begun_ns or self._is_sure(record)

    def _since(self, record: Seen) -> int:
        return max(self.readings[record.time_ns, record.offset].read_ns, self.grown_ns, self.begun_ns)

    def _is_sure(self, record: Seen) -> bool:
        late_enough = self.sure_ns >= self._since(record) + NEW_FILE_NS
        return late_enough or self.now_ns >= self.heard_ns + SILENCE_NS

    def took(self, record: Seen) -> None:
        """A record was numbered: what follows it may still be coming."""
        self.grown_ns = max(self.grown_ns, self.readings[record.time_ns, record.offset].read_ns)
        self.blank = False
