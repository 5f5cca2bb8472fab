"""Reading a pod's log as the kubelet serves it: `<RFC 3339 nanoseconds> <text>\\n` per line."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path

from portal.clusters.local.records import CONTAINER, PodStatus
from portal.clusters.local.runner import files
from portal.clusters.local.store import Store
from portal.clusters.specs import ContainerRef, LogGone

_CHUNK = 256 * 1024
# Seconds between looks at a file that does not grow: soon after something came, and once it has been quiet.
_SOON, _LATER, _QUIET_AFTER = 0.03, 0.15, 2.0


class _Joiner:
    """Records of the file in, bytes of the endpoint out. Parts of a line are joined behind its first time stamp.

    A line belongs to the moment at which it began, so `since` takes or leaves it whole.
    """

    def __init__(self, since: bytes) -> None:
        self._since = since
        self._rest = b""
        self._inside = self._skipping = False

    def feed(self, data: bytes) -> bytes:
        *records, self._rest = (self._rest + data).split(b"\n")
        out: list[bytes] = []
        for record in records:
            stamp, _stream, tag, text = record.split(b" ", 3)
            if not self._inside:
                # Stamps have one form and one length, so their order is that of their bytes.
                self._skipping = stamp < self._since
            if not self._skipping:
                if not self._inside:
                    out += (stamp, b" ")
                out.append(text)
                if tag == b"F":
                    out.append(b"\n")
            self._inside = tag == b"P"
        return b"".join(out)


class _End:
    """Whether a pod is over; reads its status only where the file changed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / files.STATUS
        self._seen: tuple[int, int] | None = None

    def reached(self) -> bool:
        try:
            facts = self._path.stat()
        except FileNotFoundError:
            return not self._path.parent.exists()
        seen = (facts.st_ino, facts.st_mtime_ns)
        if seen == self._seen:
            return False
        self._seen = seen
        return PodStatus.from_json(files.read_json(str(self._path))).over


async def read_log(
    store: Store, ref: ContainerRef, *, since: datetime | None, follow: bool
) -> AsyncGenerator[bytes, None]:
    """See `gateway.Backend.read_log`. Following ends once the pod is over and its log was read to the end."""
    folder = store.pod_folder(ref.pod_uid)
    joiner, end = _Joiner(_floor(since)), _End(folder)
    log = _open(folder, ref)
    ended, quiet = not follow, 0.0
    try:
        while True:
            data = os.read(log, _CHUNK)
            if data:
                quiet = 0.0
                chunk = joiner.feed(data)
                if chunk:
                    yield chunk
                await asyncio.sleep(0)  # a long log must not keep the loop from everything else
            elif ended:
                return
            else:
                # Looked at before the next read: what was written before the end is then still read.
                ended = end.reached()
                if not ended:
                    pause = _SOON if quiet < _QUIET_AFTER else _LATER
                    quiet += pause
                    await asyncio.sleep(pause)
    finally:
        os.close(log)


def _open(folder: Path, ref: ContainerRef) -> int:
    if folder.parent.name != "pods" or ref.container != CONTAINER or ref.restart:
        raise LogGone(f"{ref.pod} has no such container.", passing=False)
    with contextlib.suppress(FileNotFoundError):
        return os.open(folder / files.LOG, os.O_RDONLY)
    if not folder.exists():
        raise LogGone(f"The pod {ref.pod} is not on this machine any more, and its log neither.", passing=False)
    if PodStatus.from_json(files.read_json(str(folder / files.STATUS))).over:
        raise LogGone(f"The pod {ref.pod} ended before its command was started.", passing=False)
    raise LogGone(f"The pod {ref.pod} has not started yet.", passing=True)


def _floor(since: datetime | None) -> bytes:
    """The first stamp of the whole second that `since` lies in."""
    return b"" if since is None else f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.000000000Z".encode()
