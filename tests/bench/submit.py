"""Four people click on Submit in the same moment: the job is committed and its page is there. Local and Kubernetes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.bench import processes
from tests.bench.browser import Browser, form_fields
from tests.bench.context import Bench
from tests.bench.processes import Program, own_environment
from tests.bench.sites import PASSWORD, PERSON, TEAM, Site
from tests.bench.table import Row, ms, percentile, spread
from tests.support.servers import free_port

PEOPLE = 4
TARGET = 0.150
# Seconds from one common click to the next.
PACE = 2.0
# What a person opens before the click, and what the click then sends.
Form = Callable[[Browser], tuple[str, dict[str, str]]]


@dataclass(frozen=True)
class Click:
    """Seconds until the answer that says where the job is, which is sent after the commit, and until its page."""

    answered: float
    shown: float


def measure(bench: Bench) -> list[Row]:
    """A row for each backend."""
    return [_local(bench), _kube(bench)]


def _local(bench: Bench) -> Row:
    site = Site(bench.fresh("submit"))
    try:
        site.prepare()
        site.start()
        people = [_person(site.address, PERSON) for _ in range(PEOPLE)]
        found = clicks(people, _script(TEAM), bench.count(50, 4))
        site.stop()
        plain = _plain(bench, site.database_url)
    finally:
        site.close()
    return _row("local backend (the demo: one process, SQLite; each job runs at once)", found, plain)


def _kube(bench: Bench) -> Row:
    site = bench.kube()
    people = [_person(site.address, PERSON) for _ in range(PEOPLE)]
    with site.held():
        found = clicks(people, _script(site.team), bench.count(50, 4))
        site.until_settled()
        plain = _plain(bench, site.postgres.url)
    return _row("Kubernetes (four processes, PostgreSQL, Redis; jobs are queued)", found, plain)


def _row(words: str, found: Sequence[Click], plain: Sequence[Click]) -> Row:
    shown, bare = [click.shown for click in found], [click.shown for click in plain]
    committed = percentile([click.answered for click in found], 0.95)
    return Row(
        f"{PEOPLE} people click on Submit at once: {words}",
        f"p95 under {ms(TARGET)}",
        f"{spread(shown, 0.5, 0.95)}; of it committed p95 {ms(committed)}",
        percentile(shown, 0.95) < TARGET,
        f"the same rows by hand, trivial page: {spread(bare, 0.5, 0.95)}",
        percentile(shown, 0.95) / percentile(bare, 0.95),
    )


def clicks(people: Sequence[Browser], form: Form, rounds: int) -> list[Click]:
    """Every person opens the form; when all have it, all click. A first round only warms up."""
    together = threading.Barrier(len(people))

    def one(person: Browser) -> Click:
        path, fields = form(person)
        together.wait(60)
        begin = time.perf_counter()
        answer = person.post(path, fields)
        answered = time.perf_counter() - begin
        assert answer.status == 302, f"refused with {answer.status}: {answer.body[-2000:]}"
        page = person.get(answer.location)
        assert page.status == 200, f"no page: {page.status}"
        return Click(answered, time.perf_counter() - begin)

    found: list[Click] = []
    with ThreadPoolExecutor(len(people)) as pool:
        for number in range(rounds + 1):
            begin = time.monotonic()
            this = list(pool.map(one, people))
            found += this if number else []
            time.sleep(max(0.0, PACE - (time.monotonic() - begin)))
    return found


def _person(address: str, name: str) -> Browser:
    browser = Browser(address)
    browser.sign_in(name, PASSWORD)
    return browser


def _script(team: str) -> Form:
    path = f"/teams/{team}/submit/script/"

    def opened(person: Browser) -> tuple[str, dict[str, str]]:
        page = person.get(path)
        fields = form_fields(page.body, "job.key")
        return path, fields | {"script": "echo hello", "cores": "0.1", "memory": "64 MiB", "job.queue": "cpu"}

    return opened


def _plain(bench: Bench, database: str) -> list[Click]:
    port = free_port()
    environment = own_environment() | {"BARE_DATABASE": database}
    log = Path(bench.folder) / "bare.log"
    program = Program(processes.uvicorn("tests.bench.bare:app", port), environment=environment, log=log)
    with processes.running(program):
        address = f"http://127.0.0.1:{port}"
        program.until_answering(address)
        return clicks([Browser(address) for _ in range(PEOPLE)], lambda _: ("/jobs/", {}), bench.count(50, 4))
