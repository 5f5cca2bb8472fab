"""Resident memory of the web process at rest: after its pages were looked at once, as a server and as the demo."""

from __future__ import annotations

import time

from tests.bench import processes
from tests.bench.browser import Browser
from tests.bench.context import Bench
from tests.bench.processes import Program, own_environment, resident_mib
from tests.bench.sites import PASSWORD, PERSON, TEAM, Server, Site
from tests.bench.table import Row
from tests.support.servers import free_port

MOST_MB = 200
PAGES = (
    "/",
    f"/teams/{TEAM}/",
    f"/teams/{TEAM}/jobs/",
    f"/teams/{TEAM}/submit/",
    f"/teams/{TEAM}/submit/script/",
    f"/teams/{TEAM}/costs/",
    "/queues/",
    f"/api/v1/jobs/?team={TEAM}",
    "/api/v1/schema/",
)


def measure(bench: Bench) -> list[Row]:
    """One row a mode."""
    rest = bench.count(10, 2)
    plain = _plain(bench, rest)
    rows = []
    for kind, words in ((Server, "web of a server"), (Site, "demo, all in one process")):
        site = kind(bench.fresh("memory"))
        try:
            site.prepare()
            site.start()
            begun = resident_mib(site.pid)
            _look_around(site)
            time.sleep(rest)
            used = resident_mib(site.pid)
        finally:
            site.close()
        measured = f"{used:.0f} MiB with every page opened once ({begun:.0f} MiB before)"
        reference = f"uvicorn with one page: {plain:.0f} MiB"
        met = used * 2**20 < MOST_MB * 10**6
        rows.append(Row(f"resident at rest: {words}", f"under {MOST_MB} MB", measured, met, reference, used / plain))
    return rows


def _look_around(site: Site) -> None:
    browser = Browser(site.address)
    browser.sign_in(PERSON, PASSWORD)
    for path in PAGES:
        answer = browser.get(path)
        assert answer.status == 200, (path, answer.status)


def _plain(bench: Bench, rest: float) -> float:
    port = free_port()
    command = processes.uvicorn("tests.bench.hello:app", port)
    program = Program(command, environment=own_environment(), log=bench.folder / "hello.log")
    with processes.running(program):
        program.until_answering(f"http://127.0.0.1:{port}/")
        time.sleep(rest)
        return resident_mib(program.process.pid)
