"""A log that the collector delivers, while it and the portal's door are killed and the log's files are rotated."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.bench import logsite
from tests.bench.context import Bench
from tests.bench.kube import KubeSite
from tests.bench.logcut import compared, uncut, without_times
from tests.bench.processes import until
from tests.bench.table import Row
from tests.cluster.collector import BURSTS, ROTATIONS, TOKEN, Collector, kill_in_turns, numbered

LIMITS = {"containerLogMaxSize": "256Ki", "containerLogMaxFiles": 5, "containerLogMonitorInterval": "3s"}


def measure(bench: Bench) -> list[Row]:
    """One row."""
    site, kills = bench.kube(), bench.count(10, 3)
    folder = bench.fresh("logcollect")
    folder.mkdir()
    program = site.cluster.bed.setting.builds.program("collector")
    with logsite.kubelet(site, **LIMITS), _open_door(site):
        collector = Collector(program, site.cluster, site.address, folder)
        collector.start()
        try:
            job = logsite.submit(site, BURSTS)
            [name] = logsite.until_pods(site, job, 1, "Running")
            told = partial(_stream, site, job)
            until("the collector to take over", lambda: told().get("source") == "collector", seconds=120)
            where = ("-n", site.namespace, name)
            with uncut(site, where, folder / "kubectl.log") as plain:
                bench.say(f"{kills} kills of the collector, the door, or both")
                kill_in_turns(site, collector, lambda: int(told()["lines"]), kills=kills)
                site.cluster.kubectl("exec", *where, "--", "touch", "/tmp/go")
                until("a complete log with its digest", lambda: bool(told()["sha256"]), seconds=240)
        finally:
            collector.close()
        stream = told()
        text = site.client().download(stream["id"])
        rotations = site.asked(ROTATIONS.format(stream=stream["id"]))
    expected = numbered(int(text.splitlines()[-1].split()[0]))
    lost, doubled = compared(text, expected)
    equal = hashlib.sha256(text).hexdigest() == stream["sha256"] == hashlib.sha256(expected).hexdigest()
    plain_lost, plain_doubled = compared(without_times(plain.read_bytes()), expected)
    return [
        Row(
            f"the collector as the source: it, the door, or both killed {kills} times, {rotations} files",
            "0 lost, 0 doubled, 0 gaps",
            f"{'equal, digest equal' if equal else '**not equal**'}; {lost} lost, {doubled} doubled of "
            f"{stream['lines']:,} lines, {len(stream['gaps'])} gaps",
            equal and (lost, doubled, len(stream["gaps"])) == (0, 0, 0),
            f"`kubectl logs -f --timestamps`, never killed: {plain_lost} lost, {plain_doubled} doubled",
        )
    ]


def _stream(site: KubeSite, job: str) -> dict[str, Any]:
    """As the API tells it; empty as long as there is none."""
    return next(iter(logsite.told(site, job)), {})


@contextlib.contextmanager
def _open_door(site: KubeSite) -> Iterator[None]:
    """The web process takes deliveries with the collector's token."""
    site.stop("web")
    site.start("web", BEAMTIME_INGEST_TOKENS=TOKEN)
    try:
        yield
    finally:
        site.kill("web")
        site.start("web")
