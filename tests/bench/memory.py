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

MOST_MIB = 200
PAGES = ("/", f"/teams/{TEAM}/jobs/", f"/teams/{TEAM}/submit/", f"/teams/{TEAM}/submit/script/", f"/teams/{TEAM}/costs/",
         "/queues/", f"/teams/{TEAM}/", f"/api/v1/jobs/?team={TEAM}", "/api/v1/schema/")  # fmt: skip


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
        measured = f"{used:.0f} MiB after every page was opened once ({begun:.0f} MiB when it first answered)"
        reference = f"uvicorn with one page: {plain:.0f} MiB"
        rows.append(Row(f"resident at rest: {words}", f"under {MOST_MIB} MB", measured, used * 1.048576 < MOST_MIB, reference, used / plain))
    return rows


def _look_around(site: Site) -> None:
    browser = Browser(site.address)
    browser.sign_in(PERSON, PASSWORD)
    for path in PAGES:
        answer = browser.get(path)
        assert answer.status == 200, (path, answer.status)


def _plain(bench: Bench, rest: float) -> float:
    port = free_port()
    program = Program(processes.uvicorn("tests.bench.hello:app", port), environment=own_environment(), log=bench.folder / "hello.log")
    with processes.running(program):
        program.until_answering(f"http://127.0.0.1:{port}/")
        time.sleep(rest)
        return resident_mib(program.process.pid)
