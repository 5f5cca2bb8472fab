"""A log that a collector on the node delivers: the follower reads nothing and sees to it that it comes to its end."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

from portal.clusters.gateway import Backend
from portal.clusters.specs import ClusterError, ContainerRef
from portal.core.leases import Fence
from portal.logs.policy.stamps import NANO, stamp
from portal.logs.services import ingest
from portal.watch.desk import Desk

# Seconds between two looks; of silence after which the end is looked for; and after which a collector counts as gone,
# of a pod that can still be read and of one that cannot.
LOOK, QUIET, SILENT, GONE = 1.0, 2.0, 60.0, 30.0
# What a collector has read so much later than the end, in whatever log, it has read after all of this one: it looks at
# all files several times a second. Enough for two clocks that differ a little.
BEYOND_NS = 5 * NANO

# Time of the last record that the cluster has of the log, in nanoseconds, given that of the last line. 0 if its file is
# empty, because one before it was full: that is no end to be reached. None if it can no longer be read.
LastTime = Callable[[int | None], Awaitable[int | None]]


async def until_delivered(
    *,
    stream_id: UUID,
    ended: asyncio.Event,
    stop: asyncio.Event,
    last_time: LastTime,
    desk: Desk,
    fence: Fence | None,
    clock: Callable[[], int] = time.time_ns,
) -> bool:
    """Return on `stop`, or when the collector has delivered all or has gone, with the stream handed back.

    True if the log can no longer be read in the cluster, and all of it is evidently here.
    """
    loop = asyncio.get_running_loop()
    ended_ns = 0
    seen, heard = await desk.call(ingest.progress, stream_id=stream_id), loop.time()
    while not stop.is_set():
        await asyncio.sleep(LOOK)
        now = await desk.call(ingest.progress, stream_id=stream_id)
        if now.of_this_log != seen.of_this_log:
            seen, heard = now, loop.time()
        silence = loop.time() - heard
        if not ended.is_set():
            continue
        ended_ns = ended_ns or clock()
        if silence < QUIET:
            continue
        last_ns = await last_time(now.last_time_ns)
        whole = last_ns and not now.waiting and now.last_time_ns is not None and now.last_time_ns >= last_ns
        beyond = last_ns is None and not now.waiting and now.read_ns >= ended_ns + BEYOND_NS
        if whole or beyond or silence >= (SILENT if last_ns is not None else GONE):
            await desk.call(ingest.hand_back, stream_id=stream_id, fence=fence)
            return beyond
    return False


async def last_time(backend: Backend, ref: ContainerRef, *, since_ns: int | None) -> int | None:
    """See `LastTime`. `since_ns`: look for it from a time on, of which it is known that there is a record."""
    since = None if since_ns is None else datetime.fromtimestamp(since_ns // NANO, UTC)
    last, rest = 0, b""
    try:
        async for data in backend.read_log(ref, since=since, follow=False):
            *lines, rest = (rest + data).split(b"\n")
            # Of a line that is longer than anybody holds only its beginning matters, which has the time.
            rest = rest[:64]
            for line in reversed(lines):
                head = stamp(line)
                if head is not None:
                    last = max(last, head[0])
                    break
    except ClusterError:
        return None
    head = stamp(rest) if rest else None
    return last if head is None else max(last, head[0])
