"""How fast the whole log of a finished pod is stored, beside kubectl and a bare reader of the same log."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.bench import logsite
from tests.bench.context import Bench
from tests.bench.kube import KubeSite
from tests.bench.logcut import kubectl
from tests.bench.processes import ROOT, BenchError, own_environment, until
from tests.bench.table import Row

TO_KUBECTL, TO_BARE = 1.5, 0.75
# With its number a line of some 80 bytes.
WORDS = "epoch 3, loss 0.2718, 412 samples/s, lr 1.0e-04, grad norm 0.93, seen"
# As large as the log gets: nothing is rotated.
LIMITS = {"containerLogMaxSize": "8Gi"}
# The same for the watch.
TOLD = {"BEAMTIME_LOG_FILE_BYTES": str(8 * 2**30)}


class Pod(NamedTuple):
    job: str
    name: str
    lines: int
    bytes: int
    digest: str


@dataclass
class Rates:
    """Bytes of text a second, by who reads."""

    stored: list[float] = field(default_factory=list)
    kubectl: list[float] = field(default_factory=list)
    stern: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    processors: str = ""


def measure(bench: Bench) -> list[Row]:
    """One row for each reference."""
    site = bench.kube()
    size = bench.count(100, 8) * 2**20
    rates = Rates()
    with logsite.kubelet(site, **LIMITS):
        for turn in range(bench.count(2, 1)):
            site.kill("watch")
            try:
                pod = spoken(site, size)
                # Whoever reads first may find the file less warm: so they take turns.
                deeds = (_plain, _stored) if turn % 2 == 0 else (_stored, _plain)
                for deed in deeds:
                    deed(site, pod, rates)
            finally:
                if not site.alive("watch"):
                    site.start("watch")
            logsite.remove(site, pod.job)
            bench.say(f"{size / 2**20:.0f} MiB: {rates}")
    return _rows(rates, size)


def _rows(rates: Rates, size: int) -> list[Row]:
    stored, kubectl_rate, bare = _mean(rates.stored), _mean(rates.kubectl), _mean(rates.bare)
    stern = f", `stern` {_mb(_mean(rates.stern))}" if rates.stern else " (`stern` is not here)"
    best = max(kubectl_rate, _mean(rates.stern) if rates.stern else 0.0)
    measured = f"{_mb(stored)} stored and readable (seconds on a processor: {rates.processors})"
    words = f"one finished log of {size / 2**20:.0f} MiB, until all of it is stored"
    return [
        Row(
            f"{words} / kubectl",
            f"{TO_KUBECTL} times as fast",
            measured,
            stored >= TO_KUBECTL * best,
            f"`kubectl logs -f --timestamps` {_mb(kubectl_rate)}{stern}",
            stored / best,
        ),
        Row(
            f"{words} / bare read",
            f"{TO_BARE} times as fast",
            _mb(stored),
            stored >= TO_BARE * bare,
            f"a program that counts, HTTP/1.1: {_mb(bare)}",
            stored / bare,
        ),
    ]


def spoken(site: KubeSite, size: int, *, words: str = WORDS) -> Pod:
    """A pod that has written about so many bytes and ended."""
    lines = size // (len(words) + 9)
    job = logsite.submit(site, script(lines, words), cores=1)
    (name,) = logsite.until_pods(site, job, 1, "Succeeded")
    digest, written = hashlib.sha256(), 0
    for first in range(1, lines + 1, 10_000):
        last = min(lines, first + 9_999)
        text = "".join(f"{number} {words}\n" for number in range(first, last + 1)).encode()
        digest.update(text)
        written += len(text)
    return Pod(job, name, lines, written, digest.hexdigest())


def script(lines: int, words: str) -> str:
    """Writes "1 words" to "<lines> words", as fast as it can."""
    return f"seq 1 {lines} | sed 's|$| {words}|'"


def _stored(site: KubeSite, pod: Pod, rates: Rates) -> None:
    """A watch that is started now finds the log."""
    end = [0.0]

    def look() -> None:
        with site.database() as database:

            def whole() -> bool:
                row = database.execute("SELECT bytes FROM logs_stream WHERE job_id = %s", (pod.job,)).fetchone()
                return row is not None and row[0] >= pod.bytes

            until("the whole log", whole, seconds=300)
            end[0] = time.time()

    looking = threading.Thread(target=look)
    looking.start()
    began = logsite.spent(site, watch=False)
    site.start("watch", **TOLD)
    looking.join()
    if not end[0]:
        raise BenchError(f"the log was not stored in time:\n{site.tail('watch')}")
    # All that this watch has done since it started was for this log, but for its own beginning.
    rates.processors = logsite.between(began, logsite.spent(site))
    with site.database() as database:
        query = "SELECT extract(epoch FROM created_at)::float8 FROM logs_stream WHERE job_id = %s"
        row = database.execute(query, (pod.job,)).fetchone()
    assert row is not None
    rates.stored.append(pod.bytes / (end[0] - row[0]))
    # Sealing reads all of it back; and it would take a part of the processors from whoever is measured next.
    until("the log's digest", lambda: logsite.told(site, pod.job)[0]["sha256"], seconds=120, look=1.0)
    (stream,) = logsite.told(site, pod.job)
    if stream["sha256"] != pod.digest or stream["gaps"]:
        raise BenchError(f"what is stored is not what was written: {stream}")


def _plain(site: KubeSite, pod: Pod, rates: Rates) -> None:
    """The references, one after the other."""
    rates.bare.append(pod.bytes / bare(site, pod.name))
    into = site.folder / "kubectl-speed.log"
    into.unlink(missing_ok=True)
    began = time.monotonic()
    with kubectl(site, "logs", "-f", "--timestamps", "-n", site.namespace, pod.name, into=into) as program:
        program.wait(300)
    rates.kubectl.append(pod.bytes / (time.monotonic() - began))
    into.unlink()
    program_path = shutil.which("stern")
    if program_path is None:
        return
    began = time.monotonic()
    where = ["--kubeconfig", str(site.cluster.kubeconfig), "-n", site.namespace, "--no-follow", "--tail", "-1"]
    form = ["--timestamps", "--output", "raw", "--max-log-requests", "1"]
    subprocess.run([program_path, pod.name, *where, *form], stdout=subprocess.DEVNULL, check=True, timeout=300)
    rates.stern.append(pod.bytes / (time.monotonic() - began))


def bare(site: KubeSite, name: str, *, limit: int | None = None) -> float:
    """Seconds in which `tests.bench.barelog` reads a pod's log."""
    cut = "" if limit is None else f"&limitBytes={limit}"
    path = f"/api/v1/namespaces/{site.namespace}/pods/{name}/log?container=main&timestamps=true{cut}"
    command = [sys.executable, "-m", "tests.bench.barelog", str(site.cluster.kubeconfig), path]
    done = subprocess.run(command, cwd=ROOT, env=own_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"the bare reader failed:\n{done.stderr}")
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["done"], facts
    return float(facts["seconds"])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _mb(rate: float) -> str:
    return f"{rate / 1e6:.1f} MB/s"
