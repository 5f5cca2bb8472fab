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
from collections.abc import Iterable
from itertools import pairwise

from portal.logs.policy.stamps import NANO
from portal.logs.specs import Batch, Record

# A pause between two records that is shorter hides no file.
JUMP_NS = NANO // 4
# A file is the present one from one look of the kubelet to the next, never less than this
# (containerLogMonitorInterval).
# One that is overworked looks late, and then two looks may be closer.
_LOOKS_NS = 3 * NANO
# So much of a log, by its times, tells how fast it is.
_MUCH_NS = 10 * NANO
# Bytes that a record has in a file beside its text: time, pipe, flag.
_HEAD_BYTES = 40
# From asking for a log until its file is open, on a machine that is busy; it may be changed meanwhile.
_OPENING_NS = 2 * NANO
# A record that arrived this soon after it was written was sent by a reader that kept up.
PROMPT_NS = NANO // 2
# The node's clock may be this much behind ours.
CLOCK_NS = NANO
_MOST_CLOCK_NS = 60 * NANO
# Jumps and beginnings that are remembered.
_REMEMBERED = 64


class Jump:
    """A pause between two records: times, number of the line behind it, and whether the reader was behind."""

    __slots__ = ("after_ns", "late", "line", "until_ns")

    def __init__(self, after_ns: int, until_ns: int, *, line: int, late: bool) -> None:
        self.after_ns, self.until_ns, self.line, self.late = after_ns, until_ns, line, late


class Beginning:
    """What lay there when a log was first opened: was it so fast that a file before it can have been filled?

    `started_ns`: when the container started, in whole seconds; `opened_ns`: when we asked.
    """

    def __init__(self, started_ns: int, opened_ns: int) -> None:
        self._started_ns, self._opened_ns = started_ns, opened_ns
        self._first_ns = self._last_ns = self._size = 0

    def add(self, batch: Batch, *, size: int) -> bool:
        """Whether more of it may follow."""
        self._first_ns = self._first_ns or batch.times[0]
        if self._first_ns >= self._opened_ns + _OPENING_NS:
            # Written when somebody listened already: nothing lay there.
            return False
        self._size += size
        self._last_ns = batch.times[-1]
        # Of less than a second no pace can be told; then what follows is taken for it too.
        enough_ns = max(min(self._opened_ns, self._first_ns + _MUCH_NS), self._first_ns + NANO)
        return self._last_ns < enough_ns

    def unread_before(self, first: Batch, file_bytes: int) -> tuple[int, int] | None:
        """The same of a log whose first records are these."""
        if not len(first):
            return None
        self.add(first, size=sum(map(len, first.texts)) + _HEAD_BYTES * len(first))
        return self.unread(file_bytes)

    def unread(self, file_bytes: int) -> tuple[int, int] | None:
        """The times between which a whole file may have come and gone: those of the start and of the first record.

        One would have been filled at the pace of what lay there, or at one that was greater by half. Not within the
        second of the start: the kubelet would have to look in just that moment.
        """
        before, span = self._first_ns - self._started_ns, max(NANO, self._last_ns - self._first_ns)
        if not self._size or before < NANO or 3 * self._size * before < 2 * file_bytes * span:
            return None
        return self._started_ns, self._first_ns


class Seams:
    """What is known of the files of one log, and the pauses that might hide one.

    `file_bytes`: the size at which the kubelet begins a new file.
    """

    def __init__(self, file_bytes: int) -> None:
        self.file_bytes = file_bytes
        # (first record of a file, time until which it was certainly the present one)
        self._files: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)
        self._jumps: deque[Jump] = deque(maxlen=_REMEMBERED)
        # How long the promptest record took: the difference of the clocks is not greater.
        self._least_lag: int | None = None
        self._beginning: Beginning | None = None
        # Bytes a second in the files, at most; and those of the present second, with its first moment.
        self._fastest = self._in_second = self._second_ns = 0

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
        return lag - min(self._least_lag, CLOCK_NS)

    def begins(self, started_ns: int, opened_ns: int) -> None:
        """What comes next is the first that is ever read of this log; see `Beginning`."""
        self._beginning = Beginning(started_ns, opened_ns)

    def grew(self, batch: Batch, *, size: int) -> tuple[int, int] | None:
        """These records, with so many bytes of text, are the next ones in the files; see `begun`."""
        size += _HEAD_BYTES * len(batch)
        if not 0 <= batch.times[0] - self._second_ns < NANO:
            self._second_ns, self._in_second = batch.times[0], 0
        self._in_second += size
        span = max(NANO, batch.times[-1] - self._second_ns)
        self._fastest = max(self._fastest, self._in_second * NANO // span)
        if self._beginning is None or self._beginning.add(batch, size=size):
            return None
        return self.begun()

    def begun(self) -> tuple[int, int] | None:
        """All is there that lay there when the log was opened. If a file may have come and gone before it, the times
        between which that was; once only."""
        beginning, self._beginning = self._beginning, None
        return None if beginning is None else beginning.unread(self.file_bytes)

    def is_too_short(self, jump: Jump) -> bool:
        """Whether no file can have come and gone in this pause: one is filled first, and is the present one from one
        look of the kubelet to the next."""
        pause = jump.until_ns - jump.after_ns
        return pause < _LOOKS_NS and self._fastest * pause < self.file_bytes * NANO

    def looked(self, first_ns: int, asked_ns: int) -> list[Jump]:
        """At our time `asked_ns` the present file began with a record of this time. The jumps that hide a file, until
        they are `told`."""
        until = asked_ns - CLOCK_NS - max(0, min(self._least_lag or 0, _MOST_CLOCK_NS))
        if self._files and self._files[-1][0] == first_ns:
            until = max(until, self._files.pop()[1])
        self._files.append((first_ns, max(until, first_ns)))
        return [jump for jump in self._jumps if self.guilty(jump)]

    def told(self, jumps: Iterable[Jump]) -> None:
        """That files are missing there is stored."""
        for jump in jumps:
            if jump in self._jumps:
                self._jumps.remove(jump)

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
