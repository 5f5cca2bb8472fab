"""One container's log, from its first line to its last, through lost connections and changes of leader."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from enum import Enum, auto
from functools import partial
from typing import Any

from django.db import IntegrityError

from portal.clusters.gateway import Backend
from portal.clusters.specs import ClusterError, ContainerRef, LineBroken, LogGone
from portal.core.leases import Fence, FencedOff
from portal.logs import services
from portal.logs.models import Cause, Source, Stream
from portal.logs.policy.stamps import NANO, stamp
from portal.watch import history, standby, tally
from portal.watch.desk import DATABASE_DOWN, Backoff, Desk, wait_for, wait_for_any
from portal.watch.inlet import Inlet
from portal.watch.overlap import Stored
from portal.watch.reading import COMPARED_BYTES, Reading, Stale
from portal.watch.seams import Beginning, Jump, Seams
from portal.watch.slots import Slots

logger = logging.getLogger(__name__)

# A look at the present file's beginning: so often, in seconds (less than the kubelet's containerLogMonitorInterval),
# while more than so many bytes a second come, or they come so late.
LOOK_EVERY, BUSY_BYTES, LATE_NS = 4.0, 64 * 1024, 2 * NANO
# The longest pause, in seconds, while a pod is being deleted.
HURRY = 0.5
# Seconds. A log that was closed in order so short a time before its pod was gone was read to its end: nobody closes it
# by mistake in the very moment in which its container ends.
JUST_CLOSED = 5.0
# So old a log, by its row, was begun by a follower that has judged its beginning.
YOUNG_NS = 600 * NANO
# Seconds that a connection may stay open and say nothing once its container has ended.
DRAIN = 3.0
# Seconds after which a follower lends its place to another, if one is waiting; and between two looks.
TURN, LOOK = 30.0, 5.0


class _Next(Enum):
    DONE = auto()
    AT_ONCE = auto()
    AFTER_A_PAUSE = auto()


class Follower:
    """Reads one container's log into its stream.

    Whoever watches the pod sets `deleting` once it shall go, `ended` once the container has ended, and `gone` once the
    pod does not exist any more. `started_at`: when the container started; `file_bytes`: at which size the kubelet
    begins a new file; `look_every`: seconds, see `LOOK_EVERY`; `clock`: nanoseconds since the epoch.
    """

    def __init__(
        self,
        *,
        job_id: str,
        attempt: int,
        pod_index: int,
        ref: ContainerRef,
        backend: Backend,
        desk: Desk,
        slots: Slots,
        fence: Fence | None,
        stop: asyncio.Event,
        file_bytes: int,
        started_at: datetime | None = None,
        look_every: float = LOOK_EVERY,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.ref = ref
        self.ended = asyncio.Event()
        self.deleting = asyncio.Event()
        self.gone = False
        self._job_id, self._attempt, self._pod_index = job_id, attempt, pod_index
        self._backend, self._desk, self._slots = backend, desk, slots
        self._fence, self._stop = fence, stop
        self._backoff, self._connections = Backoff(), tally.Connections()
        self._started_ns = None if started_at is None else int(started_at.timestamp()) * NANO
        self._look_every, self._clock = look_every, clock
        self._seams = Seams(file_bytes)
        # Pauses of which a look has shown that they hide a file; said with the next lines that are stored.
        self._hidden: list[Jump] = []
        # The last connection was closed by the endpoint, which had kept up; and a read behind that added nothing.
        self._seen_to_end = self._read_again = False
        # The whole of the last file has been compared with what is stored.
        self._compared = False
        # When the endpoint closed the log behind a reader that had kept up; None if anything came since.
        self._closed_at: float | None = None
        # A collector has delivered all of it, and nobody can read it in the cluster any more.
        self._delivered = False
        # It was asked whether files had gone before line 1.
        self._judged = started_at is None

    async def run(self) -> bool:
        """True once the stream is complete, False if told to stop before. Raises `FencedOff`."""
        while not self._stop.is_set():
            try:
                then = await self._turn()
            except FencedOff:
                raise
            except IntegrityError:
                logger.warning("watch: pod %s names job %s, which does not exist here", self.ref.pod, self._job_id)
                return True
            except Stale:
                logger.info("watch: somebody else wrote to the log of %s; reading on from there", self.ref.pod)
                then = _Next.AFTER_A_PAUSE
            except (ClusterError, *DATABASE_DOWN) as error:
                logger.info("watch: the log of %s/%s: %s", self.ref.pod, self.ref.container, error)
                # A container that says nothing is no trouble.
                silent = isinstance(error, LineBroken) and error.silent
                then = _Next.AT_ONCE if silent else _Next.AFTER_A_PAUSE
            except Exception:
                # Log trouble stops nothing but this one read, and says nothing about the job.
                logger.exception("watch: the log of %s/%s could not be read", self.ref.pod, self.ref.container)
                then = _Next.AFTER_A_PAUSE
            if then is _Next.DONE:
                return True
            if then is _Next.AFTER_A_PAUSE:
                await self._pause()
        return False

    async def _stand_by(self, stream: Stream) -> bool:
        """While a collector delivers this log, which needs no place and no connection; see `standby`."""

        async def last_time(since_ns: int | None) -> int | None:
            # A connection like any other, if a short one.
            async with self._slots:
                return await standby.last_time(self._backend, self.ref, since_ns=since_ns)

        return await standby.until_delivered(
            stream_id=stream.pk,
            ended=self.ended,
            stop=self._stop,
            last_time=last_time,
            desk=self._desk,
            fence=self._fence,
            clock=self._clock,
        )

    async def _turn(self) -> _Next:
        """One connection, from opening to end."""
        read_again, self._read_again = self._read_again, False
        stream = await self._desk.call(
            services.open_stream,
            job_id=self._job_id,
            attempt_number=self._attempt,
            ref=self.ref,
            pod_index=self._pod_index,
            fence=self._fence,
        )
        if stream.completed_at is not None:
            return _Next.DONE
        if stream.source == Source.COLLECTOR:
            with tally.being("standing_by"):
                self._delivered = await self._stand_by(stream)
            return _Next.AT_ONCE
        async with self._slots:
            # Others may have had the places for a while.
            await self._desk.call(stream.refresh_from_db)
            ended = self.ended.is_set()
            # The log of a pod that is being deleted is read once more as soon as its end has come, while there is time.
            final = ended or (self.deleting.is_set() and self._seen_to_end)
            try:
                with self._connections.one():
                    added, closed = await self._read(stream, final=final)
            except LogGone as error:
                if error.passing and not self.gone:
                    raise
                whole = read_again or self._delivered or self._was_just_closed()
                await self._complete(stream, missing=None if whole else Cause.DELETED)
                return _Next.DONE
        self._connections.left(closed=closed, ended=self.ended.is_set() or self.deleting.is_set())
        if added:
            self._backoff.reset()
        # A clean end of the stream proves nothing: a container that has ended is read again until that adds nothing.
        self._read_again = final and closed and not added
        if ended and self._read_again:
            await self._complete(stream, missing=None)
            return _Next.DONE
        if self.ended.is_set() or not closed:
            return _Next.AT_ONCE
        return _Next.AT_ONCE if self.deleting.is_set() and added else _Next.AFTER_A_PAUSE

    def _was_just_closed(self) -> bool:
        return self._closed_at is not None and time.monotonic() - self._closed_at < JUST_CLOSED

    async def _complete(self, stream: Stream, *, missing: Cause | None) -> None:
        await self._desk.call(services.complete, stream_id=stream.pk, missing=missing, fence=self._fence)

    async def _pause(self) -> None:
        """A growing pause, cut short by the container's end or deletion (once) and by the order to stop."""
        seconds = self._backoff.pause()
        if self.deleting.is_set() and not self.gone:
            seconds = min(seconds, HURRY)
        events = [event for event in (self.ended, self.deleting) if not event.is_set()]
        with tally.being("pausing"):
            await wait_for_any(self._stop, *events, seconds=seconds)

    async def _read(self, stream: Stream, *, final: bool) -> tuple[int, bool]:
        """(lines added, whether the endpoint closed the stream). Stores what came, also where the read breaks off."""
        since_ns, stored = await self._resumption(stream, whole=final and not self._compared)
        reading = Reading(
            stream,
            stored=stored,
            desk=self._desk,
            fence=self._fence,
            seams=self._seams,
            look=self._look,
            crowd=lambda: self._slots.taken,
            clock=self._clock,
        )
        seen_to_end, self._seen_to_end = self._seen_to_end, False
        since = None if since_ns is None else datetime.fromtimestamp(since_ns // NANO, UTC)
        chunks = self._backend.read_log(self.ref, since=since, follow=not final)
        try:
            closed = await self._pump(chunks, reading, follow=not final)
        except ClusterError:
            await reading.store(last=True)
            if reading.added:
                self._closed_at = None
                self._backoff.reset()
            raise
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()
        if closed and final:
            await reading.finish(seen_to_end=seen_to_end)
            self._compared = True
        self._tell(reading)
        await reading.store(last=True)
        self._seen_to_end = closed and (seen_to_end if final else reading.kept_up)
        self._closed_at = time.monotonic() if self._seen_to_end else None
        return reading.added, closed

    async def _resumption(self, stream: Stream, *, whole: bool) -> tuple[int | None, Stored | None]:
        """(time from which to read, the lines that will be repeated). `whole`: all of the present file."""
        await self._judge_beginning(stream)
        if stream.last_time_ns is None:
            return None, None
        time_ns, most = max(0, stream.last_time_ns - history.SLACK_NS) // NANO * NANO, None
        known = await self._look() if whole or not self._seams.known else True
        if whole and known and self._seams.newest_ns is not None:
            time_ns, most = min(time_ns, self._seams.newest_ns // NANO * NANO), COMPARED_BYTES
        since = partial(history.since, stream.pk, time_ns, next_line=stream.next_line, most_bytes=most)
        stored, from_ns = await self._desk.call(since)
        return from_ns, stored

    async def _judge_beginning(self, stream: Stream) -> None:
        """Have it found out whether files had gone before line 1: from what comes; or from what is stored, if an
        earlier follower may have been killed before it knew."""
        if self._judged or self._started_ns is None:
            return
        self._judged = True
        if stream.last_time_ns is None:
            self._seams.begins(self._started_ns, self._clock())
            return
        opened_ns = int(stream.created_at.timestamp() * NANO)
        if self._clock() - opened_ns > YOUNG_NS:
            return
        beginning = Beginning(self._started_ns, opened_ns)
        first = await self._desk.call(history.beginning, stream.pk)
        unread = beginning.unread_before(first, self._seams.file_bytes)
        if unread is not None and await self._look() is not None:
            cause, after_ns, until_ns = Cause.ROTATED, *unread
            note = partial(services.note_gap, cause=cause, after_ns=after_ns, until_ns=until_ns, fence=self._fence)
            await self._desk.call(note, stream_id=stream.pk, before_line=1)

    async def _look(self) -> bool | None:
        """Learn where the present file begins. None: there is one file for ever; False: it could not be learnt."""
        for pause in (0.1, 0.3, None):
            asked_ns = self._clock()
            try:
                head = await self._backend.log_head(self.ref)
            except LogGone:
                return False
            except ClusterError:
                if pause is None:
                    return False
                await wait_for(self._stop, pause)
                continue
            if head is None:
                return None
            first = stamp(head)
            if first is None:
                return False
            self._hidden += self._seams.looked(first[0], asked_ns)
            return True
        return False

    async def _watch_for_files(self, reading: Reading) -> None:
        """Learn every beginning of a file while much comes, or comes late: `Seams` then knows what was left out."""
        while True:
            taken = reading.taken
            await asyncio.sleep(self._look_every)
            busy = reading.taken - taken > BUSY_BYTES * self._look_every
            if (busy or reading.late_ns >= LATE_NS) and await self._look() is None:
                return
            self._tell(reading)

    def _tell(self, reading: Reading) -> None:
        hidden, self._hidden = self._hidden, []
        for jump in hidden:
            reading.declare(jump)

    async def _pump(self, chunks: AsyncIterator[bytes], reading: Reading, *, follow: bool) -> bool:
        """Take in bytes until the endpoint ends them (True) or it is time to leave (False)."""
        loop = asyncio.get_running_loop()
        began = heard = loop.time()
        stop, ended = asyncio.ensure_future(self._stop.wait()), asyncio.ensure_future(self.ended.wait())
        watch = asyncio.ensure_future(self._watch_for_files(reading)) if follow else None
        inlet, ready = Inlet(chunks), None
        try:
            while not stop.done():
                ready = ready or asyncio.ensure_future(inlet.ready.wait())
                patience = DRAIN if ended.done() else LOOK
                if reading.due is not None:
                    patience = min(patience, max(0.0, reading.due - loop.time()))
                events: set[asyncio.Future[Any]] = {ready, stop} if ended.done() else {ready, stop, ended}
                await asyncio.wait(events, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                moment = loop.time()
                if ready.done():
                    data, ready, heard = inlet.take(), None, moment
                    if data is None:
                        return True
                    await reading.take(data)
                    self._tell(reading)
                if reading.full or (reading.due is not None and moment >= reading.due):
                    await reading.store()
                if follow and ended.done() and moment - heard >= DRAIN:
                    return False
                if self._slots.crowded and moment - began >= TURN and not self.deleting.is_set():
                    return False
            return False
        finally:
            tasks = [task for task in (stop, ended, ready, watch) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, inlet.close(), return_exceptions=True)
