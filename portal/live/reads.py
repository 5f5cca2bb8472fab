"""Reading a log for many viewers at once: those who want the same lines at the same moment share one query and one
encoding."""

import asyncio
import json
from collections.abc import Sequence
from typing import NamedTuple

from portal.core.errors import Gone
from portal.live.threads import in_thread
from portal.logs import selectors as logs
from portal.logs.models import Stream
from portal.logs.policy import display_text
from portal.logs.specs import Line, Page

FRAME_LINES = 500
# A frame of long lines ends here, or one line later.
FRAME_BYTES = 256 * 1024
# Seconds for which a read waits for others to join. It must not be joined once it has begun, or whoever was told of
# newer lines could be given an answer from before them.
GATHER = 0.004


# A viewer of the live end that is further behind is taken to the end, where this much of it is shown again.
BEHIND_BYTES = 1024 * 1024
_SHOWN_LINES = 500


class Window(NamedTuple):
    """Lines from one position on, as frames ready to send."""

    frames: tuple[str, ...]
    first: int
    next: int
    at_end: bool
    complete: bool
    open_text: str


_waiting: dict[tuple[object, int], "asyncio.Task[Window]"] = {}


async def window(stream: Stream, first: int) -> Window:
    """At most `FRAME_LINES` lines from `first` on. Raises `Gone`, `Unavailable`, `Corrupt`."""
    key = (stream.pk, first)
    task = _waiting.get(key)
    if task is None or task.get_loop() is not asyncio.get_running_loop():
        task = _waiting[key] = asyncio.create_task(_read(stream, first))
    # One viewer's leaving must not take the lines from the others.
    return await asyncio.shield(task)


async def _read(stream: Stream, first: int) -> Window:
    await asyncio.sleep(GATHER)
    _waiting.pop((stream.pk, first), None)
    return await in_thread(_window, stream, first)


def _window(stream: Stream, first: int) -> Window:
    """Raises `Gone` of a log that has expired, which is not an empty one."""
    page = logs.lines(stream, first, FRAME_LINES)
    if page.expired:
        raise Gone(page.expired)
    return Window(tuple(frames(page)), page.first, page.next, page.at_end, page.complete, page.open_text)


def skip_to(stream: Stream, position: int) -> int:
    """Where a viewer at line `position` should go on: there, or near the end if too much has been written since.

    By the mean length of a line, which is enough to bound what a slow viewer has still to take. One query.
    """
    end, size, expired_at = Stream.objects.values_list("next_line", "bytes", "expired_at").get(pk=stream.pk)
    mean = size / max(end - 1, 1)
    if expired_at is not None or (end - position) * mean <= BEHIND_BYTES:
        return position
    return max(position, end - max(1, min(_SHOWN_LINES, int(BEHIND_BYTES / 4 / max(mean, 1)))))


def frames(page: Page) -> list[str]:
    """A page as frames `[from, to)`; one without lines if there are none. Only the last may say that it is the end."""
    found, rows, size, start = [], [], 0, page.first
    for line in page.lines:
        row = _row(line)
        rows.append(row)
        size += len(row)
        if size >= FRAME_BYTES and line.n + 1 < page.next:
            found.append(_frame(start, line.n + 1, rows, open_text=None, complete=False))
            rows, size, start = [], 0, line.n + 1
    open_text = page.open_text or None
    found.append(_frame(start, page.next, rows, open_text=open_text, complete=page.complete))
    return found


def _row(line: Line) -> str:
    return f"[{line.n},{line.time_ns // 1_000_000},{json.dumps(display_text(line.text))}]"


def _frame(start: int, end: int, rows: Sequence[str], *, open_text: str | None, complete: bool) -> str:
    head = f'{{"type":"lines","from":{start},"to":{end},"lines":[{",".join(rows)}]'
    return f'{head},"open":{json.dumps(open_text)},"complete":{json.dumps(complete)}}}'
