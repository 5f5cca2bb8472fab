"""One read of a log: bytes in, new lines into the store."""

import asyncio
import logging
import time
from array import array
from collections.abc import Awaitable, Callable
from functools import partial

from portal.core import metrics
from portal.core.leases import Fence
from portal.logs import services
from portal.logs.models import Cause, Stream
from portal.logs.specs import Batch, Loss, Taken
from portal.watch import history
from portal.watch.desk import DATABASE_DOWN, Backoff, Desk
from portal.watch.overlap import Overlap, Stored
from portal.watch.records import Parser
from portal.watch.seams import PROMPT_NS, Jump, Recent, Seams, is_sorted, jumps_in

logger = logging.getLogger(__name__)

# One transaction stores at most about this much; it comes to that only where lines come faster than they are stored.
MOST_BYTES = 1024 * 1024
MOST_LINES = 20_000
# Seconds that a line may wait for company: the longer, the more logs are being read at once (so much for each) and the
# longer storing takes, for both share a processor. And that the state of an unfinished line may wait.
LINES_WAIT, EACH_WAIT, MOST_WAIT = 0.012, 0.004, 0.6
OPEN_WAIT = 0.2
# Of what is stored, so much is compared with a read where there is doubt.
COMPARED_BYTES = 16 * 1024 * 1024
# After so many records in a row that are older than the newest one, the node's clock was set back.
_CLOCK_SET_BACK = 1000

# Asks where the present file begins. None: this backend has one file for ever; False: it could not be learnt.
Look = Callable[[], Awaitable[bool | None]]


class Stale(Exception):
    """The stream's cursor is not where this reader left it: somebody else wrote to it."""


class Reading:
    """`stored`: the lines that this read is expected to repeat; `crowd`: how many logs are being read at this moment.

    While lines are being stored nothing is taken: that is the back-pressure, and what bounds the memory.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        stored: Stored | None,
        desk: Desk,
        fence: Fence | None,
        seams: Seams,
        look: Look,
        crowd: Callable[[], int] = lambda: 1,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.added = 0
        # Loop time by which something should be stored; None while there is nothing.
        self.due: float | None = None
        # Bytes taken, and by how much the last record came too late (nanoseconds).
        self.taken = 0
        self.late_ns = 0
        self._stream_id, self._next_line = stream.pk, stream.next_line
        self._parser = Parser(resumed=stored is not None, last_ns=stream.last_time_ns)
        self._overlap = None if stored is None else Overlap(stored)
        self._desk, self._fence, self._seams, self._look, self._clock = desk, fence, seams, look, clock
        self._recent = Recent()
        # Whether the last of the new records came at once.
        self._prompt = True
        # Time of the last record, and the greatest of all.
        self._last_ns = stream.last_time_ns
        self._newest_ns = stream.last_time_ns if stored is None else stored.last_ns
        self._older = 0
        self._times, self._texts, self._size = array("q"), list[bytes](), 0
        self._losses: list[Loss] = []
        self._jumps: list[Jump] = []
        # An older record at the end of what came: the next one tells whether it is late or a repetition. Until then.
        self._waiting = Batch.of(())
        self._waits_until = 0.0
        self._open = stream.open_text
        self._crowd = crowd
        # Seconds that the last two storings took.
        self._took = (0.0, 0.0)

    async def take(self, data: bytes) -> None:
        """The next bytes of the endpoint."""
        self.taken += len(data)
        await self._sift(self._parser.feed(data))

    async def finish(self, *, seen_to_end: bool) -> None:
        """The container has ended and these were all bytes: the last line needs no line feed.

        `seen_to_end`: an earlier read has come to the same end, so an empty log means that nothing was written to it.
        """
        await self._sift(self._parser.finish())
        if self._overlap is not None:
            rest = self._overlap.finish(whole=True)
            if len(rest) or not seen_to_end:
                await self._collect_losses(self._overlap)
            await self._admit(rest, last=True)
        await self._admit(Batch.of(()), last=True)
        await self._declare_beginning(self._seams.begun())

    @property
    def _lines_wait(self) -> float:
        # The quicker of two: the disk is slow now and then, and what follows need not wait for that as well.
        return min(MOST_WAIT, max(LINES_WAIT + EACH_WAIT * self._crowd(), 2 * min(self._took)))

    @property
    def full(self) -> bool:
        return self._size >= MOST_BYTES or len(self._texts) >= MOST_LINES

    @property
    def kept_up(self) -> bool:
        """Whether it has come past what was stored before, and the last record behind that, if any, came at once."""
        return self._overlap is None and self._prompt

    def declare(self, jump: Jump) -> None:
        """Lines are missing before a line that may be stored already."""
        if jump in self._jumps:
            return
        self._jumps.append(jump)
        self._losses.append(Loss(jump.line, Cause.SKIPPED, after_ns=jump.after_ns, until_ns=jump.until_ns))
        self.due = asyncio.get_running_loop().time()

    async def store(self, *, last: bool = False) -> None:
        """Store what is there; waits for a database that is down. Raises `Stale`, `FencedOff`.

        `last`: nothing more will be taken.
        """
        waits = len(self._waiting) and not last and asyncio.get_running_loop().time() < self._waits_until
        if len(self._waiting) and not waits:
            await self._admit(Batch.of(()), last=True)
        self.due = self._waits_until if waits else None
        settled = self._overlap is None or self._overlap.settled
        open_text = self._parser.open_text if settled else ""
        if self._texts or self._losses or open_text != self._open:
            began = time.monotonic()
            await self._append(Batch(self._times, self._texts, trusted=True), open_text)
            self._open = open_text
            self._took = (self._took[1], time.monotonic() - began)

    async def _sift(self, batch: Batch) -> None:
        if self._overlap is not None and len(batch):
            batch = await self._compare(batch)
        await self._admit(batch)
        self._be_due(self._lines_wait if self._texts or self._losses else OPEN_WAIT)

    async def _collect_losses(self, overlap: Overlap) -> None:
        if overlap.doubtful is not None:
            (loss, record), overlap.doubtful = overlap.doubtful, None
            if await self._desk.call(history.is_end_of_line, self._stream_id, loss.before_line - 1, record.text):
                overlap.missing.remove(loss)
        if any(loss.before_line == self._next_line for loss in overlap.missing):
            # What lies between the last stored line and the next one is said already.
            self._last_ns = None
        self._losses += overlap.missing
        overlap.missing = []

    def _be_due(self, seconds: float) -> None:
        due = asyncio.get_running_loop().time() + seconds
        self.due = due if self.due is None else min(self.due, due)

    async def _admit(self, batch: Batch, *, last: bool = False) -> None:
        """Records that belong behind what is stored, but for those that the endpoint sends a second time."""
        if len(self._waiting):
            batch, self._waiting = self._waiting + batch, Batch.of(())
        at = 0
        while at < len(batch):
            rest = batch[at:] if at else batch
            if (self._newest_ns is None or rest.times[0] >= self._newest_ns) and is_sorted(rest):
                self._older = 0
                await self._accept(rest)
                return
            older = _first_older(rest.times, self._newest_ns)
            if older:
                await self._accept(rest[:older])
                at += older
                continue
            if len(rest) == 1 and not last:
                self._waiting = rest
                self._waits_until = asyncio.get_running_loop().time() + OPEN_WAIT
                return
            skip = await self._repetition(rest)
            if skip is None:
                self._older += 1
                if self._older > _CLOCK_SET_BACK:
                    self._newest_ns = rest.times[0]
                await self._accept(rest[:1])
                at += 1
                continue
            batch, at = await self._compare(rest[skip:]), 0

    async def _compare(self, batch: Batch) -> Batch:
        """What of a stretch that repeats stored lines is new."""
        overlap = self._overlap
        if overlap is None:
            return batch
        if self._last_ns is not None:
            # The last stored line is being sent again.
            self.late_ns = self._seams.arrived(self._last_ns, self._clock())
        batch = overlap.new(batch)
        if overlap.unanchored and len(batch):
            # Before anything is called lost or new: times may have gone back (a clock that was set), and then the line
            # lies further up than was looked for.
            look = partial(history.behind, most_bytes=COMPARED_BYTES, next_line=self._next_line)
            found = await self._desk.call(look, self._stream_id, batch[:1])
            if found is not None:
                overlap = self._overlap = Overlap(found[0], cause=Cause.SKIPPED)
                batch = overlap.new(batch)
        await self._collect_losses(overlap)
        if overlap.settled:
            self._overlap = None
        return batch

    async def _repetition(self, rest: Batch) -> int | None:
        """Whether the endpoint has begun a file anew: how many records to drop before comparing; None if it has not.

        A file may begin with the rest of a line, which then comes as a line that was never stored: so two are tried.
        """
        candidates = [record for record in rest[:2] if self._newest_ns is None or record.time_ns <= self._newest_ns]
        since = self._recent.since_ns
        known = any(self._recent.holds(record) for record in candidates)
        # A step back only: behind a clock that was set back, times are old but grow.
        back = self._last_ns is None or rest.times[0] < self._last_ns
        beyond = back and (since is None or any(record.time_ns < since for record in candidates))
        if not known and not beyond:
            return None
        await self._flush()
        found = await self._desk.call(history.behind, self._stream_id, candidates, next_line=self._next_line)
        if found is None:
            return None
        stored, index = found
        logger.info("watch: the log endpoint sends %s lines of %s again", len(stored.keys), self._stream_id)
        metrics.LOG_REPEATS.inc()
        self._overlap = Overlap(stored, cause=Cause.SKIPPED)
        return index

    async def _flush(self) -> None:
        if self._texts or self._losses:
            await self._append(Batch(self._times, self._texts, trusted=True), "")
            self._open = ""

    async def _accept(self, batch: Batch) -> None:
        """New records: behind a pause that may hide a file, only once that is clear."""
        now = self._clock()
        times = batch.times
        for at in jumps_in(batch, self._last_ns):
            before = times[at - 1] if at else self._last_ns
            if before is None:
                continue
            late = self.late_ns if at == 0 else self._seams.arrived(before, now)
            late = max(late, self._seams.arrived(times[at], now))
            line = self._next_line + len(self._texts) + at
            jump = Jump(before, times[at], line=line, late=late >= PROMPT_NS)
            if await self._hides_a_file(jump):
                self._losses.append(Loss(line, Cause.SKIPPED, after_ns=before, until_ns=times[at]))
            else:
                self._seams.passed(jump)
        size = sum(map(len, batch.texts))
        await self._declare_beginning(self._seams.grew(batch, size=size))
        self._last_ns = times[-1]
        newest = max(times[-1], times[0]) if is_sorted(batch) else max(times)
        self._newest_ns = newest if self._newest_ns is None else max(self._newest_ns, newest)
        self.late_ns = self._seams.arrived(times[-1], now)
        self._prompt = self.late_ns < PROMPT_NS
        self._times += times
        self._texts += batch.texts
        self._size += size
        self._recent.add(batch)

    async def _declare_beginning(self, unread: tuple[int, int] | None) -> None:
        """Files may have come and gone between these times, before anything was read."""
        if unread is not None and await self._look() is not None:
            self._losses.append(Loss(1, Cause.ROTATED, after_ns=unread[0], until_ns=unread[1]))

    async def _hides_a_file(self, jump: Jump) -> bool:
        if self._seams.guilty(jump):
            return True
        if not jump.late or self._seams.is_too_short(jump) or self._seams.innocent(jump):
            return False
        known = await self._look()
        if known is None:
            return False
        return not (known and (self._seams.innocent(jump) or self._seams.began_at_or_before(jump.after_ns)))

    async def _append(self, batch: Batch, open_text: str) -> None:
        backoff = Backoff()
        # While this is being stored, a look may find more.
        losses, self._losses, jumps, self._jumps = self._losses, [], self._jumps, []
        work = partial(
            services.append,
            stream_id=self._stream_id,
            first_line=self._next_line,
            records=batch,
            open_text=open_text,
            losses=losses,
            fence=self._fence,
        )
        while True:
            try:
                taken = await self._desk.call(work)
                break
            except DATABASE_DOWN as error:
                # If it was stored and only the answer was lost, the next try finds the cursor moved.
                logger.warning("watch: lines wait for the database (%s)", error)
                await asyncio.sleep(backoff.pause())
        if not taken:
            raise Stale
        self._seams.told(jumps)
        if taken is Taken.STORED:
            self._next_line += len(batch)
            self.added += len(batch)
        self._times, self._texts, self._size = array("q"), [], 0


def _first_older(times: "array[int]", newest_ns: int | None) -> int:
    """Position of the first record that is older than one before it; the length if there is none."""
    newest = times[0] if newest_ns is None else newest_ns
    for at, moment in enumerate(times):
        if moment < newest:
            return at
        newest = moment
    return len(times)
