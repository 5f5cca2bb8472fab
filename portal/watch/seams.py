"""Where one file of a container's log ends and the next begins, and whether one in between was left out. Pure.

The log endpoint reads one file to its end, then opens what has the file's name by then. A reader that could not send
for a while (we, the API server or the network were slow) meets two faults at that place, both without an error:

- Files that came and went meanwhile are never read. What is missing then lies between two records: the last of the
  old file and the first of the new one, and the last of the old file was sent after the file left out had gone.
- Each rotation slept through makes it open the name once more, so the newest file is sent a second time from its
  beginning. Times that go back show it (`Recent`).

A look at the first record of the present file says where that file began: between that moment and the look there is one
file only, and a reader of one file leaves nothing out.
"""

from collections import deque
from itertools import pairwise

from portal.logs.specs import Batch, Record

NANO = 1_000_000_000
# A file is the present one from one look of the kubelet to the next, three seconds and more, unless it is overworked. A
# pause between two records that is shorter hides none.
JUMP_NS = NANO // 4
# A record that arrived this soon after it was written was sent by a reader that kept up.
PROMPT_NS = NANO // 2
# The node's clock may be this much behind ours.
CLOCK_NS = NANO
_MOST_CLOCK_NS = 60 * NANO
# Bytes: the smallest log that anybody lets rotate, and what tells a rate.
_SMALLEST_FILE, _MUCH_AT_ONCE = 256 * 1024, 8 * 1024
# Jumps and beginnings that are remembered.
_REMEMBERED = 64


class Jump:
    """A pause between two records: times, number of the line behind it, and whether the reader was behind."""

    __slots__ = ("after_ns", "late", "line", "until_ns")

    def __init__(self, after_ns: int, until_ns: int, *, line: int, late: bool) -> None:
        self.after_ns, self.until_ns, self.line, self.late = after_ns, until_ns, line, late


class Seams:
    """What is known of the files of one log, and the pauses that might hide one."""

    def __init__(self) -> None:
        # (first record of a file, time until which it was certainly the present one)
        self._files: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)
        self._jumps: deque[Jump] = deque(maxlen=_REMEMBERED)
        # How long the promptest record took: the difference of the clocks is not greater.
        self._least_lag: int | None = None

    @property
    def known(self) -> bool:
        """Whether any file's beginning is."""
        return bool(self._files)

    @property
    def newest_ns(self) -> int | None:
        """Time of the first record of the file seen last."""
        return self._files[-1][0] if self._files else None

    def arrived(self, time_ns: int, now_ns: int) -> int:
        """A record of this time has come; by how many nanoseconds it is late."""
        lag = now_ns - time_ns
        if self._least_lag is None or lag < self._least_lag:
            self._least_lag = lag
        return lag - min(0, self._least_lag)

    def looked(self, first_ns: int, asked_ns: int) -> list[Jump]:
        """At our time `asked_ns` the present file began with a record of this time. The jumps that hide that."""
        until = asked_ns - CLOCK_NS - max(0, min(self._least_lag or 0, _MOST_CLOCK_NS))
        if self._files and self._files[-1][0] == first_ns:
            until = max(until, self._files.pop()[1])
        self._files.append((first_ns, max(until, first_ns)))
        found = [jump for jump in self._jumps if jump.after_ns < first_ns < jump.until_ns]
        for jump in found:
            self._jumps.remove(jump)
        return found

    def passed(self, jump: Jump) -> None:
        """Nothing spoke against it; a later look may."""
        self._jumps.append(jump)

    def began_at_or_before(self, time_ns: int) -> bool:
        """Whether the file seen last began no later than this."""
        return bool(self._files) and self._files[-1][0] <= time_ns

    def innocent(self, jump: Jump) -> bool:
        """Whether both records certainly lie in one file."""
        return any(first <= jump.after_ns and jump.until_ns <= until for first, until in self._files)

    def guilty(self, jump: Jump) -> bool:
        """Whether a file began in the pause, and its first record did not come."""
        return any(jump.after_ns < first < jump.until_ns for first, _until in self._files)


def jumps_in(batch: Batch, before_ns: int | None) -> list[int]:
    """Positions of the records `JUMP_NS` or more behind the one before them; `before_ns` is before the first."""
    found = []
    times = batch.times
    if before_ns is not None and times[0] - before_ns >= JUMP_NS:
        found.append(0)
    if times[-1] - times[0] >= JUMP_NS:
        found += [at for at, (one, two) in enumerate(pairwise(times), 1) if two - one >= JUMP_NS]
    return found


def began_late(batch: Batch, started_ns: int, now_ns: int) -> bool:
    """Whether files may have come and gone before the first records that were ever read, which are these.

    No file goes within three seconds of the container's start (a time in whole seconds). And none goes before it has
    its size: a container that is late with its first word, or says little, has not filled one.
    """
    silent = batch.times[0] - started_ns
    if min(silent, now_ns - started_ns) < 4 * NANO:
        return False
    size = sum(map(len, batch.texts))
    span = max(batch.times[-1] - batch.times[0], NANO // 1000)
    return size >= _MUCH_AT_ONCE and size * silent // span >= _SMALLEST_FILE


def is_sorted(batch: Batch) -> bool:
    """Whether no record is older than the one before it."""
    times = batch.times.tolist()
    return times == sorted(times)


class Recent:
    """The records stored last, a few hundred kilobytes of them, to tell a late line from one that came before."""

    BYTES = 512 * 1024

    def __init__(self) -> None:
        self._batches: deque[tuple[Batch, int]] = deque()
        self._size = 0
        # No record in it is older; None while it is empty.
        self.since_ns: int | None = None

    def add(self, batch: Batch) -> None:
        size = sum(map(len, batch.texts))
        self._batches.append((batch, size))
        self._size += size
        while self._size > self.BYTES and len(self._batches) > 1:
            self._size -= self._batches.popleft()[1]
        self.since_ns = min(self._batches[0][0].times)

    def holds(self, record: Record) -> bool:
        for batch, _size in reversed(self._batches):
            at = -1
            while True:
                try:
                    at = batch.times.index(record.time_ns, at + 1)
                except ValueError:
                    break
                if batch.texts[at] == record.text:
                    return True
        return False
