"""`/ws/v1/streams/<id>/?from=<line>`: a log, from any line on, then as it grows."""

from collections.abc import Iterable

from portal.core import bus, metrics
from portal.live import reads
from portal.live.socket import Close, Closing, Socket
from portal.live.threads import in_thread
from portal.logs import selectors as logs
from portal.logs.models import Stream
from portal.teams.models import User

_MOST_DIGITS = 15


class StreamSocket(Socket):
    noun = "log"

    def find(self, user: User) -> Stream:
        return logs.stream_for(user, self.key)

    def topics(self, subject: Stream) -> Iterable[str]:
        return [f"stream:{subject.pk}"]

    async def talk(self, subject: Stream, news: bus.Subscription) -> None:
        position, shown = self._first(), None
        # Looked at only where the last read did not reach the end: a viewer who keeps up costs no query of its own.
        skips = behind = self.query.get("skip") == ["yes"]
        while True:
            if behind:
                position = await self._skipped(subject, position)
            window = await reads.window(subject, position)
            # A frame without lines is worth sending at the start, at the end, and when the unfinished line has changed.
            if window.next > window.first or window.complete or window.open_text != shown:
                for frame in window.frames:
                    await self.send_text(frame)
            position, shown = window.next, window.open_text
            behind = skips and not window.at_end
            if window.complete:
                return
            if window.at_end or window.next == window.first:
                # Heard before the read began or after: either way it is in the next read.
                await news.get()
                news.drain()

    async def _skipped(self, subject: Stream, position: int) -> int:
        """For a viewer that asked for it: where to go on once it is more than `BEHIND_BYTES` behind. It is told."""
        end = await in_thread(reads.skip_to, subject, position)
        if end > position:
            metrics.LIVE_SKIPS.inc()
            metrics.LIVE_SKIPPED_LINES.inc(end - position)
            await self.send_text(f'{{"type":"skipped","from":{position},"to":{end}}}')
        return end

    def _first(self) -> int:
        """The line to begin with: `from`, which is what a client has seen last plus one. Line 1 without it."""
        text = self.query.get("from", ["1"])[-1]
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS) or int(text) < 1:
            raise Closing(Close.BAD_REQUEST)
        return int(text)
