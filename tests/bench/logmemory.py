"""How much a watch grows while it follows a log of a gibibyte at which viewers look who do not read."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from tests.bench import logsite
from tests.bench.context import Bench
from tests.bench.kube import KubeSite
from tests.bench.logspeed import LIMITS, TOLD, script
from tests.bench.processes import ROOT, BenchError, own_environment, resident_mib, until
from tests.bench.table import Row

MOST_MIB = 64
VIEWERS = 20
# Lines of half a kilobyte: a gibibyte of short ones would take ten minutes here.
WORDS = "batch " + "0.123456789 " * 41


def measure(bench: Bench) -> list[Row]:
    """One row."""
    site = bench.kube()
    size = bench.count(1024, 48) * 2**20
    lines = size // (len(WORDS) + 9)
    with logsite.kubelet(site, **LIMITS), logsite.watch(site, BEAMTIME_LOG_BYTES_PER_JOB="0", **TOLD):
        # At rest, as it is after its first log.
        first = logsite.submit(site, "echo hello", cores=0.1)
        logsite.until_stored(site, first, "a complete log", lambda found: found and found[0].complete)
        with Memory(site.pid("watch")).sampled() as memory:
            job = logsite.submit(site, script(lines, WORDS), cores=1)
            logsite.until_stored(site, job, "its first lines", lambda found: found and found[0].lines)
            (stream,) = logsite.told(site, job)
            with viewers(site, stream["id"], VIEWERS):
                bench.say(f"{VIEWERS} viewers do not read {size / 2**20:.0f} MiB")
                began = time.monotonic()
                logsite.until_stored(
                    site, job, "the whole log", lambda found: found[0].complete, seconds=bench.count(480, 120)
                )
                seconds = time.monotonic() - began
        # Sealing reads all of it back: whoever is measured next wants the processors.
        until("the log's digest", lambda: logsite.told(site, job)[0]["sha256"], seconds=180, look=1.0)
        (stream,) = logsite.told(site, job)
        whole = (stream["lines"], stream["gaps"]) == (lines, [])
        (name,) = logsite.until_pods(site, job, 1, "Succeeded")
        plain = _plain(site, name, limit=bench.count(256, 48) * 2**20)
        logsite.remove(site, job)
    grown = memory.most - memory.begin
    return [
        Row(
            f"a watch's growth over a log of {size / 2**20:,.0f} MiB, {VIEWERS} viewers stalled",
            f"{MOST_MIB} MiB",
            f"{grown:.0f} MiB (from {memory.begin:.0f} to {memory.most:.0f}); {stream['lines']:,} lines stored in "
            f"{seconds:.0f} s, {stream['trouble'] or 'no gap'}",
            grown <= MOST_MIB and whole,
            f"a program that counts the same lines grows by {plain:.0f} MiB",
        )
    ]


class Memory:
    """Resident memory of a process in MiB: at the beginning, and at most."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.begin = self.most = resident_mib(pid)
        self._over = threading.Event()

    @contextlib.contextmanager
    def sampled(self) -> Iterator[Memory]:
        thread = threading.Thread(target=self._look)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, BenchError):
                self.most = max(self.most, resident_mib(self._pid))


@contextlib.contextmanager
def viewers(site: KubeSite, stream: str, count: int) -> Iterator[None]:
    """So many that ask for a log from its first line on and then read nothing."""
    asked = (
        f"GET /live/v1/streams/{stream}/events?from=1 HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n"
        f"Authorization: Bearer {site.token}\r\nAccept: text/event-stream\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            viewer = stack.enter_context(socket.socket())
            # What the kernel keeps for them is no business of the portal's.
            viewer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            viewer.settimeout(30)
            viewer.connect(("127.0.0.1", site.port))
            viewer.sendall(asked.encode())
            answer = viewer.recv(12)
            assert answer == b"HTTP/1.1 200", answer
        yield


def _plain(site: KubeSite, pod: str, *, limit: int) -> float:
    """By how many MiB `tests.bench.barelog` grows while it reads the beginning of the same log."""
    path = f"/api/v1/namespaces/{site.namespace}/pods/{pod}/log?container=main&timestamps=true&limitBytes={limit}"
    command = [sys.executable, "-m", "tests.bench.barelog", str(site.cluster.kubeconfig), path]
    with subprocess.Popen(command, cwd=ROOT, env=own_environment(), stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        # Its first word comes once it reads.
        first = program.stdout.readline()
        assert json.loads(first)["seconds"] >= 0
        memory = Memory(program.pid)
        with memory.sampled():
            program.stdout.read()
            program.wait(300)
    return memory.most - memory.begin
