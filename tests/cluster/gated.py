"""A pod that writes only as many lines as it may, so that no file of its log is ever full while nobody reads.

What the kubelet rotates away unread, nobody can have; and a slow machine does that to any reader that is cut or killed
at the wrong moment. Who wants to prove that cuts and kills cost no line must keep the two apart: here what is allowed
always fits into the present file, and what fills that file is allowed once all before it is stored and somebody
listens.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from .client import Client
from .line import Line
from .running import Running
from .testbed.cluster import KubectlError

# Numbers of one width, so that it is known how much of a file they fill.
BASE = 10_000_000
# Bytes of such a line in the runtime's file, with time, pipe, flag and line feed: at most, and less than on average.
# The runtime leaves out zeros at the end of a time.
_MOST, _LEAST = 49, 48
PATIENCE = 90.0

WRITER = f"""trap 'exit 143' TERM
n=0
most=0
while [ "$most" != end ]; do
  while [ "$n" -lt "$most" ]; do
    to=$((n + 50))
    [ "$to" -le "$most" ] || to=$most
    seq $(({BASE} + n + 1)) $(({BASE} + to))
    n=$to
    sleep 0.02
  done
  sleep 0.05
  [ ! -e /tmp/most ] || read -r most < /tmp/most
done
"""


def numbered(lines: int) -> bytes:
    """What such a pod has written."""
    return "".join(f"{BASE + number}\n" for number in range(1, lines + 1)).encode()


@dataclass
class Kept:
    """What is stored at the end: `stream` as the API tells it, `text` as it is downloaded."""

    stream: dict[str, Any]
    text: bytes


class Gated:
    """`file_bytes`: the kubelet's containerLogMaxSize."""

    def __init__(self, site: Running, client: Client, *, file_bytes: int) -> None:
        self._site, self.cluster, self._client = site, site.cluster, client
        self._file_bytes = file_bytes
        self._in_file = 0
        self.job = self.stream = self._pod = ""
        # How many lines it may write, and has written once `catch_up` returns; and how often its file was changed.
        self.allowed = self.rotations = 0

    @property
    def where(self) -> tuple[str, ...]:
        """The words by which kubectl finds the pod."""
        return ("-n", f"bt-{self._site.team}", self._pod)

    @property
    def fits(self) -> int:
        """Lines that a file takes and is certainly not full."""
        return (self._file_bytes - 1) // _MOST

    def begin(self) -> None:
        """Submit it, and wait until its first lines are stored."""
        values = {"script": WRITER, "cores": 0.5, "memory": "64 MiB"}
        body = {"team": self._site.team, "template": "script", "queue": "cpu", "values": values}
        self.job = str(self._client.post("jobs/", body)["id"])
        self._pod = self.cluster.wait_for("the pod to run", self._running, seconds=PATIENCE)
        self.allow(10)
        self.stream = self.cluster.wait_for("a stored line", self._first_stream, seconds=PATIENCE)
        self.catch_up()

    def allow(self, lines: int) -> None:
        """So many more."""
        self.allowed += lines
        self._in_file += lines
        self._say(str(self.allowed))

    def stored(self) -> int:
        found: int = self._client.get(f"streams/{self.stream}/")["lines"]
        return found

    def catch_up(self) -> None:
        """Wait until all is stored that it may write."""
        self.cluster.wait_for("every line to be stored", lambda: self.stored() == self.allowed, seconds=PATIENCE)

    def rotate(self) -> None:
        """Fill the file while somebody listens, and let the kubelet change it while nothing is written.

        It may come a moment earlier, with the last of these lines in the next file already.
        """
        # One line that arrives: the reader is back from its last accident.
        self.allow(1)
        self.catch_up()
        before = self._first()
        self.allow(max(1, self._file_bytes // _LEAST + 1 - self._in_file))
        self.catch_up()
        self.cluster.wait_for("a rotation", lambda: self._first() not in (before, None), seconds=PATIENCE)
        self._in_file = len(self.cluster.kubectl_bytes("logs", *self.where).splitlines())
        self.rotations += 1

    def finish(self) -> Kept:
        """Let it end, and wait until its log is complete and has its digest."""
        # Something in the last file that is stored: with it the last read is compared.
        self.allow(10)
        self.catch_up()
        self._say("end")
        stream = self.cluster.wait_for("a complete log with its digest", self._complete, seconds=PATIENCE)
        state = self._client.get(f"jobs/{self.job}/")["state"]
        assert state == "succeeded", state
        return Kept(stream, self._client.download(self.stream))

    def _say(self, word: str) -> None:
        # Renamed, so that it never reads half a number.
        deed = f"echo {word} > /tmp/said && mv /tmp/said /tmp/most"
        self.cluster.kubectl("exec", *self.where, "--", "sh", "-c", deed)

    def _running(self) -> str | None:
        place = ("-n", f"bt-{self._site.team}", "-l", f"beamtime/job={self.job}")
        for pod in self.cluster.kubectl_json("get", "pods", *place)["items"]:
            if pod["status"]["phase"] == "Running":
                return str(pod["metadata"]["name"])
        return None

    def _first_stream(self) -> str | None:
        streams = self._client.get(f"jobs/{self.job}/")["streams"]
        return str(streams[0]["id"]) if streams and streams[0]["lines"] else None

    def _first(self) -> bytes | None:
        """Where the present file begins; empty if it is. None between two files: the kubelet says what it misses."""
        with suppress(KubectlError):
            head = self.cluster.kubectl_bytes("logs", *self.where, "--timestamps", "--limit-bytes=30")
            if head.startswith(b"2") or not head:
                return head
        return None

    def _complete(self) -> dict[str, Any] | None:
        stream: dict[str, Any] = self._client.get(f"streams/{self.stream}/")
        return stream if stream["complete"] and stream["sha256"] else None


@dataclass
class Accidents:
    """What has happened to the reader. `amid`: while lines were on their way to it."""

    cuts: int = 0
    kills: int = 0
    amid: int = 0


def under_fire(pod: Gated, line: Line, kill: Callable[[], None], *, cuts: int, kills: int, each_file: int) -> Accidents:
    """Cut the reader's connections so often, and `kill` it, while the pod writes; after `each_file` of that a rotation.

    `kill` returns once another reader lives.
    """
    seen = Accidents()
    every = (cuts + kills) // kills if kills else cuts + 1
    portion = pod.fits * 9 // 10 // each_file
    for number in range(1, cuts + kills + 1):
        before = pod.allowed
        pod.allow(portion)
        pod.cluster.wait_for("the first lines of it", partial(_has_more, pod, before), seconds=PATIENCE)
        seen.amid += pod.stored() < pod.allowed
        if number % every == 0 and seen.kills < kills:
            kill()
            seen.kills += 1
        else:
            pod.cluster.wait_for("an open line", line.cut, seconds=PATIENCE)
            seen.cuts += 1
        pod.catch_up()
        if number % each_file == 0:
            pod.rotate()
    return seen


def _has_more(pod: Gated, than: int) -> bool:
    return pod.stored() > than
