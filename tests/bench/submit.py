"""Four people click on Submit: the job is committed and its page is there. On the local backend and on Kubernetes."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.bench import processes
from tests.bench.browser import Browser, form_fields
from tests.bench.context import Bench
from tests.bench.processes import Program, own_environment
from tests.bench.sites import PASSWORD, PERSON, TEAM, Site
from tests.bench.table import Row, ms, percentile, spread
from tests.support.servers import free_port

PEOPLE = 4
TARGET = 0.150
# Seconds that a person looks at the form before the click; and from one common click to the next.
LOOKS, PACE = (1.0, 3.0), 2.0
# What a person opens before the click, and what the click then sends.
Form = Callable[[Browser], tuple[str, dict[str, str]]]


@dataclass(frozen=True)
class Click:
    """Seconds until the answer that says where the job is, which is sent after the commit, and until its page."""

    answered: float
    shown: float


@dataclass(frozen=True)
class Clicks:
    """`apart`: each at a pace of their own; `together`: all in the same moment."""

    apart: Sequence[Click]
    together: Sequence[Click]


def measure(bench: Bench) -> list[Row]:
    """A row for each backend."""
    return [_local(bench), _kube(bench)]


def _local(bench: Bench) -> Row:
    site = Site(bench.fresh("submit"))
    try:
        site.prepare()
        site.start()
        found = _clicks(bench, [_person(site.address, PERSON) for _ in range(PEOPLE)], _script(TEAM))
        site.stop()
        plain = _plain(bench, site.database_url)
    finally:
        site.close()
    return _row("local backend (the demo: one process, SQLite; each job runs at once)", found, plain)


def _kube(bench: Bench) -> Row:
    site = bench.kube()
    with site.held():
        found = _clicks(bench, [_person(site.address, PERSON) for _ in range(PEOPLE)], _script(site.team))
        site.until_settled()
        plain = _plain(bench, site.postgres.url)
    return _row("Kubernetes (four processes, PostgreSQL, Redis; jobs are queued)", found, plain)


def _row(words: str, found: Clicks, plain: Clicks) -> Row:
    apart, together = ([click.shown for click in clicks] for clicks in (found.apart, found.together))
    committed = percentile([click.answered for click in found.apart], 0.95)
    bare = [click.shown for click in plain.apart]
    return Row(
        f"click on Submit → the job's page, {PEOPLE} people: {words}",
        f"p95 under {ms(TARGET)}",
        f"{spread(apart, 0.5, 0.95)}, of it committed p95 {ms(committed)}; all in the same moment p95 "
        f"{ms(percentile(together, 0.95))}",
        percentile(apart, 0.95) < TARGET,
        f"the same rows by hand, a page of one line: {spread(bare, 0.5, 0.95)}; in the same moment p95 "
        f"{ms(percentile([click.shown for click in plain.together], 0.95))}",
        percentile(apart, 0.95) / percentile(bare, 0.95),
    )


def _clicks(bench: Bench, people: Sequence[Browser], form: Form) -> Clicks:
    with ThreadPoolExecutor(len(people)) as pool:
        rounds = bench.count(50, 4)
        apart = [click for each in pool.map(partial(_at_own_pace, form, rounds), people) for click in each]
        together = threading.Barrier(len(people))
        in_step = pool.map(partial(_in_step, form, bench.count(20, 2), together), people)
        return Clicks(apart, [click for each in in_step for click in each])


def _at_own_pace(form: Form, rounds: int, person: Browser) -> list[Click]:
    """Open the form, look at it, click. The first click only warms up."""
    chance = random.Random(id(person))
    found = []
    for _ in range(rounds + 1):
        path, fields = form(person)
        time.sleep(chance.uniform(*LOOKS))
        found.append(_click(person, path, fields))
    return found[1:]


def _in_step(form: Form, rounds: int, together: threading.Barrier, person: Browser) -> list[Click]:
    """Open the form; when all have it, all click."""
    found = []
    for _ in range(rounds):
        path, fields = form(person)
        together.wait(60)
        begin = time.monotonic()
        found.append(_click(person, path, fields))
        time.sleep(max(0.0, PACE - (time.monotonic() - begin)))
    return found


def _click(person: Browser, path: str, fields: dict[str, str]) -> Click:
    begin = time.perf_counter()
    answer = person.post(path, fields)
    answered = time.perf_counter() - begin
    assert answer.status == 302, f"refused with {answer.status}: {answer.body[-2000:]}"
    page = person.get(answer.location)
    assert page.status == 200, f"no page: {page.status}"
    return Click(answered, time.perf_counter() - begin)


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


def _plain(bench: Bench, database: str) -> Clicks:
    port = free_port()
    environment = own_environment() | {"BARE_DATABASE": database}
    log = bench.folder / "bare.log"
    program = Program(processes.uvicorn("tests.bench.bare:app", port), environment=environment, log=log)
    with processes.running(program):
        address = f"http://127.0.0.1:{port}"
        program.until_answering(address)
        return _clicks(bench, [Browser(address) for _ in range(PEOPLE)], lambda _: ("/jobs/", {}))
