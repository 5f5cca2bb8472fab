"""Fifty pods that write a thousand lines a second each, one watch process, PostgreSQL on the same processors."""

from __future__ import annotations

import contextlib
import json
import ssl
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.bench import logsite
from tests.bench.context import Bench
from tests.bench.kube import KubeSite
from tests.bench.processes import Program, own_environment, running, until
from tests.bench.table import Row

EACH, LAG = 1_000, 2.0
SETTLE, LOOK = 3.0, 0.5
UP, DOWN, STEPS = 1.25, 0.8, 6
# Says nothing itself: the stand-in speaks for it.
SILENT = "trap 'exit 0' TERM\nsleep 3000 &\nwait\n"
SUMS = """
SELECT coalesce(sum(next_line - 1), 0)::bigint,
       coalesce(extract(epoch FROM clock_timestamp()) - min(last_time_ns) / 1e9, 0)::float8
FROM logs_stream WHERE job_id = %s
"""


class Seen(NamedTuple):
    """How far a reader is: lines in all, and seconds since the last line of the log that it is behind with most."""

    at: float
    lines: int
    lag: float


class Held(NamedTuple):
    """A rate that was offered for a while, lines a second in all, and what became of it."""

    offered: int
    taken: float
    lag: float

    @property
    def good(self) -> bool:
        return self.lag < LAG and self.taken > 0.93 * self.offered


class Source:
    """The stand-in: `tests.bench.loglines`, in a process of its own."""

    def __init__(self, folder: Path, pods: int) -> None:
        self.kubeconfig = folder / "relay.kubeconfig"
        self.pods = pods
        cluster = yaml.safe_load(self.kubeconfig.read_text())["clusters"][0]["cluster"]
        self._address = str(cluster["server"])
        self._tls = ssl.create_default_context(cafile=str(folder / "stand-in.crt"))

    def offer(self, lines: int) -> int:
        """Let all logs together grow by so many lines a second; how many exactly."""
        each = max(0, lines // self.pods // 10 * 10)
        with urllib.request.urlopen(f"{self._address}/bench/rate/{each}", context=self._tls, timeout=30):  # noqa: S310
            return each * self.pods


def measure(bench: Bench) -> list[Row]:
    """One row."""
    site = bench.kube()
    pods = bench.count(50, 6)
    folder = bench.fresh("logmany")
    folder.mkdir()
    with _stand_in(site, folder, pods) as source:
        with logsite.watch(site, BEAMTIME_CLUSTER_KUBECONFIG=str(source.kubeconfig)):
            job = logsite.submit(site, SILENT, runs=pods, cores=0.02)
            names = logsite.until_pods(site, job, pods, "Running")
            source.offer(pods * 10)
            logsite.until_stored(site, job, "a line of every pod", lambda found: _all_speak(found, pods))
            with site.database() as database:

                def seen() -> Seen:
                    lines, lag = database.execute(SUMS, (job,)).fetchone() or (0, 0.0)
                    return Seen(time.time(), lines, lag)

                began, clock = logsite.spent(site), time.monotonic()
                target = hold(source, seen, pods * EACH, seconds=bench.count(30, 5))
                cores = logsite.between(began, logsite.spent(site), seconds=time.monotonic() - clock)
                bench.say(f"{target.offered:,} lines/s: {target.taken:,.0f} stored, lag at most {target.lag:.1f} s")
                best = highest(bench, source, seen, target)
            source.offer(0)
            site.kill("watch")
            site.client().post(f"jobs/{job}/cancel/")
        with _bare(bench, site, source, names) as seen:
            plain = highest(bench, source, seen, hold(source, seen, pods * EACH, seconds=bench.count(8, 3)))
    return [_row(target, best, plain, cores, pods)]


def _row(target: Held, best: Held, plain: Held, cores: str, pods: int) -> Row:
    return Row(
        f"one watch, {pods} pods × {EACH:,} lines/s, PostgreSQL beside it; the lines come from a stand-in for the log "
        "endpoint (`loglines.py`)",
        f"{pods * EACH:,} lines/s, lag under {LAG:.0f} s; the highest rate found",
        f"{target.taken:,.0f} lines/s stored, lag at most {target.lag:.1f} s, processors busy: {cores}; highest: "
        f"{best.taken:,.0f} lines/s, lag at most {best.lag:.1f} s",
        target.good,
        f"a program that counts the same lines: up to {plain.taken:,.0f} lines/s, lag at most {plain.lag:.1f} s",
        best.taken / plain.taken if plain.taken else None,
    )


def hold(source: Source, seen: Callable[[], Seen], rate: int, *, seconds: float) -> Held:
    """Offer a rate, and look how it is taken once it has settled."""
    offered = source.offer(rate)
    logsite.pause(SETTLE)
    first = last = seen()
    worst = first.lag
    while last.at - first.at < seconds:
        logsite.pause(LOOK)
        last = seen()
        worst = max(worst, last.lag)
    return Held(offered, (last.lines - first.lines) / (last.at - first.at), worst)


def highest(bench: Bench, source: Source, seen: Callable[[], Seen], begin: Held) -> Held:
    """The highest rate that is taken with the lag allowed, in steps from one that was tried."""
    best, tried = begin, begin
    for _ in range(STEPS):
        if tried.good:
            best = tried
        elif best.good:
            break
        else:
            # What has piled up goes first.
            source.offer(0)
            until("what has piled up to be taken", _calm(seen), seconds=120, look=1.0)
        rate = tried.offered * (UP if tried.good else DOWN)
        tried = hold(source, seen, int(rate), seconds=bench.count(10, 3))
        bench.say(f"{tried.offered:,} lines/s: {tried.taken:,.0f} taken, lag at most {tried.lag:.1f} s")
    return tried if tried.good else best


def _calm(seen: Callable[[], Seen]) -> Callable[[], bool]:
    """Whether nothing has been taken since the last look."""
    lines = [-1]

    def calm() -> bool:
        before, lines[0] = lines[0], seen().lines
        return before == lines[0]

    return calm


def _all_speak(found: list[logsite.Stored], pods: int) -> bool:
    return len(found) == pods and all(each.lines for each in found)


@contextlib.contextmanager
def _stand_in(site: KubeSite, folder: Path, pods: int) -> Iterator[Source]:
    command = [sys.executable, "-m", "tests.bench.loglines", str(site.kubeconfig("watch")), str(folder)]
    program = Program(command, environment=own_environment(), log=folder / "loglines.log")
    with running(program):
        until("the stand-in", lambda: "serving" in program.tail(), seconds=30)
        yield Source(folder, pods)


@contextlib.contextmanager
def _bare(bench: Bench, site: KubeSite, source: Source, names: list[str]) -> Iterator[Callable[[], Seen]]:
    """The reference: `tests.bench.barelog`."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    query = f"container=main&timestamps=true&follow=true&sinceTime={moment}"
    paths = [f"/api/v1/namespaces/{site.namespace}/pods/{name}/log?{query}" for name in names]
    command = [sys.executable, "-m", "tests.bench.barelog", str(source.kubeconfig), *paths]
    program = Program(command, environment=own_environment(), log=bench.fresh("barelog"))

    def seen() -> Seen:
        facts = json.loads(program.tail().splitlines()[-1])
        return Seen(facts["at"], facts["lines"], facts["lag"])

    with running(program):
        source.offer(source.pods * EACH)
        until("the bare reader", lambda: program.tail() and seen().lines, seconds=30, look=0.2)
        yield seen
