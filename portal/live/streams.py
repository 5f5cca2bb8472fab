"""`/ws/v1/streams/<id>/?from=<line>`: a log, from any line on, then as it grows."""

from collections.abc import Iterable

from portal.core import bus
from portal.live import reads
from portal.live.socket import Close, Closing, Socket
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
        while True:
            window = await reads.window(subject, position)
            # A frame without lines is worth sending at the start, at the end, and when the unfinished line has changed.
            if window.next > window.first or window.complete or window.open_text != shown:
                for frame in window.frames:
                    await self.send_text(frame)
            position, shown = window.next, window.open_text
            if window.complete:
                return
            if window.at_end or window.next == window.first:
                # Heard before the read began or after: either way it is in the next read.
                await news.get()
                news.drain()

    def _first(self) -> int:
        """The line to begin with: `from`, which is what a client has seen last plus one. Line 1 without it."""
        text = self.query.get("from", ["1"])[-1]
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS) or int(text) < 1:
            raise Closing(Close.BAD_REQUEST)
        return int(text)
