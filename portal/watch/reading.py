"""One read of a log: bytes in, new lines into the store."""

import asyncio
import logging
from array import array
from collections.abc import Sequence

from portal.core.leases import Fence
from portal.logs import services
from portal.logs.models import Cause, Stream
from portal.logs.specs import Record
from portal.watch.desk import DATABASE_DOWN, Backoff, Desk
from portal.watch.overlap import Overlap
from portal.watch.records import Parser

logger = logging.getLogger(__name__)

MOST_BYTES = 64 * 1024
MOST_LINES = 1000
# Seconds that a line, and the state of an unfinished line, may wait for company.
LINES_WAIT = 0.1
OPEN_WAIT = 0.2


class Stale(Exception):
    """The stream's cursor is not where this reader left it: somebody else wrote to it."""


class Reading:
    """`stored`: the keys of the lines that this read is expected to repeat.

    While lines are being stored nothing is read: that is the back-pressure, and what bounds the memory.
    """

    def __init__(self, stream: Stream, *, stored: "array[int]", resumed: bool, desk: Desk, fence: Fence | None) -> None:
        self.added = 0
        # Loop time by which something should be stored; None while there is nothing.
        self.due: float | None = None
        self._stream_id, self._next_line, self._last_ns = stream.pk, stream.next_line, stream.last_time_ns
        self._parser = Parser(resumed=resumed, last_ns=stream.last_time_ns)
        self._overlap = Overlap(stored)
        self._gap_told = False
        self._desk, self._fence = desk, fence
        self._records: list[Record] = []
        self._size = 0
        self._open = stream.open_text

    def take(self, data: bytes) -> None:
        """The next bytes of the endpoint."""
        self._add(self._overlap.new(self._parser.feed(data)))

    def finish(self) -> None:
        """The container has ended and these were all bytes: the last line needs no line feed."""
        self._add(self._overlap.new(self._parser.finish()))

    @property
    def full(self) -> bool:
        return self._size >= MOST_BYTES or len(self._records) >= MOST_LINES

    async def store(self) -> None:
        """Store what is there; waits for a database that is down. Raises `Stale`, `FencedOff`."""
        self.due = None
        open_text = self._parser.open_text if self._overlap.settled else ""
        if self._overlap.gap and not self._gap_told:
            await self._desk.call(
                services.note_gap,
                stream_id=self._stream_id,
                before_line=self._next_line,
                cause=Cause.ROTATED,
                after_ns=self._last_ns,
                until_ns=self._records[0].time_ns if self._records else None,
                fence=self._fence,
            )
            self._gap_told = True
        if self._records or open_text != self._open:
            await self._append(open_text)
            self._open = open_text

    def _add(self, records: Sequence[Record]) -> None:
        moment = asyncio.get_running_loop().time()
        due = moment + (LINES_WAIT if records else OPEN_WAIT)
        self.due = due if self.due is None else min(self.due, due)
        self._records.extend(records)
        self._size += sum([len(record.text) for record in records])

    async def _append(self, open_text: str) -> None:
        backoff = Backoff()
        while True:
            try:
                stored = await self._desk.call(
                    services.append,
                    stream_id=self._stream_id,
                    first_line=self._next_line,
                    records=self._records,
                    open_text=open_text,
                    fence=self._fence,
                )
                break
            except DATABASE_DOWN as error:
                # If it was stored and only the answer was lost, the next try finds the cursor moved.
                logger.warning("watch: lines wait for the database (%s)", error)
                await asyncio.sleep(backoff.pause())
        if not stored:
            raise Stale
        self._next_line += len(self._records)
        self.added += len(self._records)
        self._records, self._size = [], 0
