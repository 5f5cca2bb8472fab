"""One container's log, from its first line to its last, through lost connections and changes of leader."""

import asyncio
import logging
from array import array
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any
from uuid import UUID

from django.db import IntegrityError

from portal.clusters.gateway import Backend
from portal.clusters.specs import ClusterError, ContainerRef, LogGone
from portal.core.leases import Fence, FencedOff
from portal.logs import selectors, services
from portal.logs.models import Cause, Stream
from portal.watch.desk import DATABASE_DOWN, Backoff, Desk, wait_for
from portal.watch.overlap import keys_of
from portal.watch.reading import Reading, Stale
from portal.watch.slots import Slots

logger = logging.getLogger(__name__)

NANO = 1_000_000_000
# Two pipes of one container are stamped apart: a record that is a little late must not fall before the resumption.
SLACK_NS = NANO
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

    Whoever watches the pod sets `ended` once the container has ended, and `gone` once the pod does not exist any more.
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
    ) -> None:
        self.ref = ref
        self.ended = asyncio.Event()
        self.gone = False
        self._job_id, self._attempt, self._pod_index = job_id, attempt, pod_index
        self._backend, self._desk, self._slots = backend, desk, slots
        self._fence, self._stop = fence, stop
        self._backoff = Backoff()

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
                then = _Next.AFTER_A_PAUSE
            except Exception:
                # Log trouble stops nothing but this one read, and says nothing about the job.
                logger.exception("watch: the log of %s/%s could not be read", self.ref.pod, self.ref.container)
                then = _Next.AFTER_A_PAUSE
            if then is _Next.DONE:
                return True
            if then is _Next.AFTER_A_PAUSE:
                await self._pause()
        return False

    async def _turn(self) -> _Next:
        """One connection, from opening to end."""
        async with self._slots:
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
            final = self.ended.is_set()
            try:
                added, closed = await self._read(stream, follow=not final)
            except LogGone as error:
                if error.passing and not self.gone:
                    raise
                await self._complete(stream, missing=Cause.DELETED)
                return _Next.DONE
        if added:
            self._backoff.reset()
        # A clean end of the stream proves nothing: a container that has ended is read once more, from its last second
        # on, until that adds nothing.
        if final and closed and not added:
            await self._complete(stream, missing=None)
            return _Next.DONE
        return _Next.AT_ONCE if self.ended.is_set() or not closed else _Next.AFTER_A_PAUSE

    async def _complete(self, stream: Stream, *, missing: Cause | None) -> None:
        await self._desk.call(services.complete, stream_id=stream.pk, missing=missing, fence=self._fence)

    async def _pause(self) -> None:
        """A growing pause, cut short by the container's end (once) and by the order to stop."""
        seconds = self._backoff.pause()
        if self.ended.is_set():
            await wait_for(self._stop, seconds)
            return
        tasks = [asyncio.ensure_future(event.wait()) for event in (self.ended, self._stop)]
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()

    async def _read(self, stream: Stream, *, follow: bool) -> tuple[int, bool]:
        """(lines added, whether the endpoint closed the stream). Stores what came, also where the read breaks off."""
        since_ns, stored = None, keys_of(())
        if stream.last_time_ns is not None:
            since_ns = max(0, stream.last_time_ns - SLACK_NS) // NANO * NANO
            stored = await self._desk.call(stored_keys, stream.pk, since_ns)
        reading = Reading(stream, stored=stored, resumed=since_ns is not None, desk=self._desk, fence=self._fence)
        since = None if since_ns is None else datetime.fromtimestamp(since_ns // NANO, UTC)
        chunks = self._backend.read_log(self.ref, since=since, follow=follow)
        try:
            closed = await self._pump(chunks, reading, follow=follow)
        except ClusterError:
            await reading.store()
            raise
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()
        if closed and not follow:
            reading.finish()
        await reading.store()
        return reading.added, closed

    async def _pump(self, chunks: AsyncIterator[bytes], reading: Reading, *, follow: bool) -> bool:
        """Take in bytes until the endpoint ends them (True) or it is time to leave (False)."""
        loop = asyncio.get_running_loop()
        began = heard = loop.time()
        stop, ended = asyncio.ensure_future(self._stop.wait()), asyncio.ensure_future(self.ended.wait())
        chunk: asyncio.Future[bytes | None] | None = None
        try:
            while not stop.done():
                chunk = chunk or asyncio.ensure_future(_next(chunks))
                patience = DRAIN if ended.done() else LOOK
                if reading.due is not None:
                    patience = min(patience, max(0.0, reading.due - loop.time()))
                events: set[asyncio.Future[Any]] = {chunk, stop} if ended.done() else {chunk, stop, ended}
                await asyncio.wait(events, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                moment = loop.time()
                if chunk.done():
                    data, chunk, heard = chunk.result(), None, moment
                    if data is None:
                        return True
                    reading.take(data)
                if reading.full or (reading.due is not None and moment >= reading.due):
                    await reading.store()
                if follow and ended.done() and moment - heard >= DRAIN:
                    return False
                if self._slots.crowded and moment - began >= TURN:
                    return False
            return False
        finally:
            tasks = [task for task in (stop, ended, chunk) if task is not None]
            for task in tasks:
                task.cancel()
            # A generator that is still running cannot be closed.
            await asyncio.gather(*tasks, return_exceptions=True)


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


def stored_keys(stream_id: UUID, since_ns: int) -> "array[int]":
    """The keys of the lines that a read from this time on repeats. In a thread, as whatever asks the database."""
    return keys_of(selectors.stored_since(stream_id, since_ns, slack_ns=SLACK_NS))
