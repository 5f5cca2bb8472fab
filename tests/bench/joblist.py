"""The job list with 100,000 jobs in the database: as API and as page, on PostgreSQL and on SQLite."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection

import psycopg

from tests.bench.browser import Browser
from tests.bench.context import Bench
from tests.bench.sites import PASSWORD, PERSON, TEAM, Server, Site
from tests.bench.table import Row, ms, percentile, spread

FEW = 200
TARGETS = {"api": 0.040, "page": 0.120}
WORDS = {"api": "API, 50 rows", "page": "page, 50 rows"}

# What a list shows of a job, and no more; one page needs one row more to know that there are older ones.
ROWS = """
SELECT j.id, j.state, j.reason_code, j.reason, j.name, j.submitted_by_name, j.submitted_at, j.started_at, j.ended_at,
       j.cancel_requested_at, j.rerun_of_id, j.revision, t.slug, m.slug, v.number, q.name
FROM jobs_job j
JOIN teams_team t ON t.id = j.team_id
JOIN catalog_templateversion v ON v.id = j.template_version_id
JOIN catalog_template m ON m.id = v.template_id
JOIN quotas_localqueue l ON l.id = j.queue_id
JOIN quotas_clusterqueue q ON q.id = l.cluster_queue_id
WHERE t.slug = 'vision' ORDER BY j.submitted_at DESC, j.id DESC LIMIT 51
"""
COUNTS = """
SELECT j.state, count(*) FROM jobs_job j JOIN teams_team t ON t.id = j.team_id WHERE t.slug = 'vision' GROUP BY j.state
"""


def measure(bench: Bench) -> list[Row]:
    """Two rows for each database."""
    rows = []
    for kind in (Server, Site):
        engine = "PostgreSQL" if kind is Server else "SQLite"
        site = kind(bench.fresh("joblist"))
        try:
            rows += _of(bench, site, engine)
        finally:
            site.close()
    return rows


def _of(bench: Bench, site: Site, engine: str) -> list[Row]:
    many, asks = bench.count(100_000, 2_000), bench.count(200, 20)
    site.prepare()
    site.inside("fill", TEAM, FEW)
    few = site.inside("queries", TEAM)
    bench.say(f"{engine}: filling in {many} jobs")
    site.inside("fill", TEAM, many - FEW)
    queries = site.inside("queries", TEAM)
    site.start()
    rows = []
    for name, ask in _asks(site).items():
        times = _times(ask, asks)
        with _hand_written(site, name) as query:
            plain = _times(query, asks)
        constant = few[name] == queries[name]
        grown = f"{queries[name]} queries" if constant else f"{few[name]} queries at {FEW} jobs, {queries[name]} now"
        rows.append(
            Row(
                f"job list, {many:,} jobs, {engine}: {WORDS[name]}",
                f"p95 {ms(TARGETS[name])}, query count constant",
                f"{spread(times, 0.5, 0.95)}; {grown}",
                percentile(times, 0.95) <= TARGETS[name] and constant,
                f"hand-written SQL: p95 {percentile(plain, 0.95) * 1000:.1f} ms",
                percentile(times, 0.95) / percentile(plain, 0.95),
            )
        )
    return rows


def _asks(site: Site) -> dict[str, Callable[[], None]]:
    """By name: one request over a connection that is kept, as scripts and browsers have it."""
    token = site.manage("token", PERSON).strip().splitlines()[-1]
    line = HTTPConnection("127.0.0.1", site.port, timeout=30)
    browser = Browser(site.address)
    browser.sign_in(PERSON, PASSWORD)

    def api() -> None:
        line.request("GET", f"/api/v1/jobs/?team={TEAM}&limit=50", headers={"Authorization": f"Bearer {token}"})
        answer = line.getresponse()
        body = answer.read()
        assert answer.status == 200, body

    def page() -> None:
        answer = browser.get(f"/teams/{TEAM}/jobs/")
        assert answer.status == 200, answer.body

    return {"api": api, "page": page}


@contextlib.contextmanager
def _hand_written(site: Site, name: str) -> Iterator[Callable[[], None]]:
    """The same rows for a program that has SQL and a connection and nothing else; for the page the counts too."""
    wanted = (ROWS,) if name == "api" else (ROWS, COUNTS)
    with contextlib.closing(_connect(site)) as connection:
        cursor = connection.cursor()

        def query() -> None:
            for each in wanted:
                assert cursor.execute(each).fetchall()

        yield query


def _connect(site: Site) -> psycopg.Connection | sqlite3.Connection:
    if site.database_url.startswith("postgres"):
        return psycopg.connect(site.database_url.replace("postgres://", "postgresql://"), autocommit=True)
    return sqlite3.connect(site.database_url.removeprefix("sqlite:///"))


def _times(ask: Callable[[], None], count: int) -> list[float]:
    """Seconds of each of so many calls, after a few that warm up."""
    for _ in range(5):
        ask()
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        ask()
        found.append(time.perf_counter() - begin)
    return found
