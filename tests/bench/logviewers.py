"""Many viewers of one log: what they cost the cluster, how late they are, and how much of the web process they hold."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

from tests.bench.biglog import verb
from tests.bench.context import Bench
from tests.bench.kube import KubeSite
from tests.bench.logverbs import LINES_A_PORTION
from tests.bench.processes import BenchError, Program, own_environment, resident_mib, running, until, uvicorn
from tests.bench.sites import TEAM, Server
from tests.bench.table import Row, ms
from tests.support.servers import free_port

CROWD, RATE = 200, 40
UPSTREAM = 100
P99, MIB = 0.250, 1.0
# One person may have fifty sockets; some are left for the person.
A_PERSON = 40
# Lines between the places at which stalled viewers begin, so that no two of them share what they hold.
APART = 2000
SCRIPT = "n=0; while [ $n -lt {count} ]; do n=$((n + 1)); echo line $n; sleep 0.05; done"


def measure(bench: Bench) -> list[Row]:
    """Requests at the API server, lateness, memory."""
    rows = [_upstream(bench)]
    site = Server(bench.fresh("viewers"))
    try:
        site.prepare()
        tokens = verb(site.environment(), "people", TEAM, -(-bench.count(CROWD, 40) // A_PERSON))["tokens"]
        rows.append(_lateness(bench, site, tokens))
        rows.append(_memory(bench, site, tokens))
    finally:
        site.close()
    return rows


# -- requests at the API server


def _upstream(bench: Bench) -> Row:
    site = bench.kube()
    tokens = verb(site.environment("worker"), "people", site.team, -(-UPSTREAM // A_PERSON))["tokens"]
    few, many = _requests(bench, site, tokens, 1), _requests(bench, site, tokens, UPSTREAM)
    return Row(
        f"log requests at the API server with {UPSTREAM} viewers / with 1",
        "1.0",
        f"{many / few:.1f} ({many} / {few})",
        many <= few,
        f"`kubectl logs -f` by each viewer: {UPSTREAM}.0",
        many / few / UPSTREAM,
    )


def _requests(bench: Bench, site: KubeSite, tokens: list[str], viewers: int) -> int:
    """How many log requests one job costs from its start to the end of its log."""
    before = _counted(site)
    client = site.client()
    job = client.post("jobs/", site.body(SCRIPT.format(count=bench.count(300, 100))))["id"]
    until("the job's log", lambda: client.get(f"jobs/{job}/")["streams"], seconds=60, look=0.2)
    stream = client.get(f"jobs/{job}/")["streams"][0]["id"]
    with _crowd(bench, site.port, f"/ws/v1/streams/{stream}/?from=1&skip=yes", tokens, viewers) as crowd:
        said = crowd.said(seconds=90)
    assert said["late"] == said["holes"] == 0, said
    until("the end of the log", lambda: client.get(f"jobs/{job}/")["streams"][0]["complete"], seconds=60, look=0.2)
    return _counted(site) - before


def _counted(site: KubeSite) -> int:
    """Log requests that the API server has begun: those that are over and those that go on."""
    total = 0.0
    for line in site.cluster.kubectl("get", "--raw", "/metrics").splitlines():
        name = line.partition("{")[0]
        if name in ("apiserver_request_total", "apiserver_longrunning_requests") and 'subresource="log"' in line:
            total += float(line.rpartition(" ")[2])
    return int(total)


# -- lateness


def _lateness(bench: Bench, site: Server, tokens: list[str]) -> Row:
    count, portions = bench.count(CROWD, 40), bench.count(30, 5) * RATE
    upto = 1 + portions * LINES_A_PORTION
    site.start()
    stream = verb(site.environment(), "running", TEAM)["stream"]
    address = f"/ws/v1/streams/{stream}/?from=1&skip=yes"
    with _crowd(bench, site.port, address, tokens, count, upto=upto) as crowd:
        spoken = verb(site.environment(), "speak", stream, portions, RATE)
        said = crowd.said(seconds=60)
    site.stop()
    assert spoken["last"] == upto, spoken
    plain = _bare(bench, count, portions, upto)
    lost = count * upto - said["lines"] - said["left_out"]
    frames = said["frames"] / count / spoken["seconds"]
    return Row(
        f"{count} viewers of one stream at {RATE} portions/s: line appended → frame at the viewer",
        f"p99 {ms(P99)}, 0 frames lost without a notice",
        f"p50 {ms(said['p50'])}, p99 {ms(said['p99'])} ({frames:.0f} frames/s each); "
        f"{said['holes']} holes, {lost} lines lost, {said['left_out']} skipped with a notice",
        said["p99"] <= P99 and not (said["holes"] or lost or said["late"]),
        f"the same frames by uvicorn alone: p50 {ms(plain['p50'])}, p99 {ms(plain['p99'])}",
        said["p99"] / plain["p99"],
    )


def _bare(bench: Bench, count: int, portions: int, upto: int) -> dict[str, Any]:
    settings = {"BARE_VIEWERS": str(count), "BARE_FRAMES": str(portions), "BARE_RATE": str(RATE)}
    with _bare_web(bench, settings) as (port, _), _crowd(bench, port, "/live", [], count, upto=upto) as crowd:
        return crowd.said(seconds=portions / RATE + 60)


# -- memory


def _memory(bench: Bench, site: Server, tokens: list[str]) -> Row:
    count = bench.count(CROWD, 40)
    lines = count * APART + 20_000
    made = verb(site.environment(), "write", TEAM, lines, site.folder / "much.log", "no")
    site.start()
    grown = _grown(bench, site.port, site.pid, f"/ws/v1/streams/{made['stream']}/?from={{line}}", tokens, count)
    site.stop()
    with _bare_web(bench, {}) as (port, pid):
        plain = _grown(bench, port, pid, "/much", [], count)
    return Row(
        f"web process, for each of {count} viewers that do not read",
        f"{MIB:.0f} MiB",
        f"{grown:.2f} MiB ({grown * count:.0f} MiB in all)",
        grown <= MIB,
        f"uvicorn alone: {plain:.2f} MiB",
        grown / plain if plain > 0 else None,
    )


def _grown(bench: Bench, port: int, pid: int, path: str, tokens: list[str], count: int) -> float:
    """MiB for each viewer, at the highest, until no more comes."""
    # One viewer warms up: threads, connections, caches.
    with _crowd(bench, port, path, tokens, 1, stalled=True, apart=APART):
        _highest(pid)
    begun = resident_mib(pid)
    with _crowd(bench, port, path, tokens, count, stalled=True, apart=APART):
        return (_highest(pid) - begun) / count


def _highest(pid: int) -> float:
    """MiB, once it has not grown for three seconds."""
    highest, changed_at = resident_mib(pid), time.monotonic()
    while time.monotonic() - changed_at < 3:
        now = resident_mib(pid)
        if now > highest + 0.5:
            highest, changed_at = now, time.monotonic()
        time.sleep(0.1)
    return highest


# -- programs


class Crowd:
    """The running program of `tests.bench.viewers`."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def said(self, *, seconds: float) -> dict[str, Any]:
        """What it prints at its end. Raises BenchError if that does not come."""
        until("the viewers to have it all", lambda: self._program.process.poll() is not None, seconds=seconds)
        last = self._program.tail().splitlines()[-1]
        if not last.startswith("{"):
            raise BenchError(f"the viewers failed:\n{self._program.tail()}")
        found: dict[str, Any] = json.loads(last)
        return found


@contextlib.contextmanager
def _crowd(bench: Bench, port: int, path: str, tokens: list[str], count: int, **more: object) -> Iterator[Crowd]:
    spec = {"host": "127.0.0.1", "port": port, "path": path, "tokens": tokens, "count": count, "seconds": 300, **more}
    command = [sys.executable, "-m", "tests.bench.viewers", json.dumps(spec)]
    number = sum(1 for _ in bench.folder.glob("viewers-*.log"))
    program = Program(command, environment=own_environment(), log=bench.folder / f"viewers-{number}.log")
    with running(program):
        until(f"{count} viewers", lambda: re.search("^ready|Error", program.tail(), re.MULTILINE), seconds=90)
        yield Crowd(program)


@contextlib.contextmanager
def _bare_web(bench: Bench, settings: dict[str, str]) -> Iterator[tuple[int, int]]:
    port = free_port()
    command = uvicorn("tests.bench.barefan:app", port)
    program = Program(command, environment=own_environment() | settings, log=bench.folder / "barefan.log")
    with running(program):
        program.until_answering(f"http://127.0.0.1:{port}/")
        yield port, program.process.pid
