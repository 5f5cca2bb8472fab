"""From a pod's state at a raw watch to the same in the database and on the open page of the job."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from playwright.sync_api import Page

from tests.bench.chromium import signed_in
from tests.bench.context import Bench
from tests.bench.kube import KubeSite
from tests.bench.processes import Program, own_environment, until
from tests.bench.rawwatch import Object, RawWatch
from tests.bench.table import Row, ms, percentile, spread

# Both are the states of a pod that people wait for.
PHASES = ("Running", "Succeeded")
DATABASE, PAGE = {0.5: 0.050, 0.99: 0.500}, {0.5: 0.200, 0.99: 1.000}
LOOK = 0.005

TABLE = "CREATE TABLE bench_seen (job text, phase text, PRIMARY KEY (job, phase))"
QUERY = """
SELECT j.revision, p.phase, array(SELECT phase FROM bench_seen s WHERE s.job = j.id::text)
FROM jobs_job j JOIN jobs_attempt a ON a.job_id = j.id LEFT JOIN jobs_pod p ON p.attempt_id = a.id WHERE j.id = %s
"""
# When which revision of the job first stood on the page; set up before the page's own scripts run.
OBSERVE = """
window.benchSeen = {};
const note = () => {
  const shown = document.querySelector("[data-revision]");
  const at = (performance.timeOrigin + performance.now()) / 1000;
  if (shown && !(shown.dataset.revision in window.benchSeen)) window.benchSeen[shown.dataset.revision] = at;
};
new MutationObserver(note).observe(document, {subtree: true, childList: true, attributes: true});
"""


@dataclass
class Seen:
    """By phase: when the database had it, at which revision of the job, and when the plain watcher had written it."""

    stored: dict[str, float] = field(default_factory=dict)
    revision: dict[str, int] = field(default_factory=dict)
    plain: dict[str, float] = field(default_factory=dict)


def measure(bench: Bench) -> list[Row]:
    """Two rows over the same jobs."""
    site = bench.kube()
    count = bench.count(30, 3)
    stored, shown, plain = [], [], []
    with site.database() as database:
        database.execute(TABLE)
    with _pods(site) as watch, _plain_watcher(bench, site), signed_in(site.address, OBSERVE) as page:
        for number in range(count + 1):
            job, seen, on_page = _one(site, page)
            # The first one warms up.
            for phase in PHASES if number else ():
                raw = watch.at[f"{job} {phase}"]
                stored.append(seen.stored[phase] - raw)
                plain.append(seen.plain[phase] - raw)
                shown.append(min(at for which, at in on_page.items() if which >= seen.revision[phase]) - raw)
    return [_row("in the database", stored, plain, DATABASE), _row("on the open page", shown, plain, PAGE)]


def _row(words: str, found: list[float], plain: list[float], most: dict[float, float]) -> Row:
    return Row(
        f"pod state at a raw watch → {words}",
        ", ".join(f"p{share * 100:.0f} {ms(limit)}" for share, limit in most.items()),
        spread(found, *most),
        all(percentile(found, share) <= limit for share, limit in most.items()),
        f"bare watcher that INSERTs the state: {spread(plain, *most)}",
        percentile(found, 0.5) / percentile(plain, 0.5),
    )


def _one(site: KubeSite, page: Page) -> tuple[str, Seen, dict[int, float]]:
    """A job from its submission to its end, with its page open."""
    job = str(site.client().post("jobs/", site.body("sleep 2"))["id"])
    seen, stop = Seen(), threading.Event()
    looking = threading.Thread(target=_look, args=(site, job, seen, stop))
    looking.start()
    try:
        answer = page.goto(f"{site.address}/teams/{site.team}/jobs/{job}/")
        assert answer is not None
        assert answer.ok, f"no page of the job: {answer.status}"
        until(f"job {job} in the database", lambda: len(seen.stored) == len(seen.plain) == len(PHASES), seconds=60)
        last = seen.revision[PHASES[-1]]
        # Asked from outside: the page's own policy forbids what `wait_for_function` does.
        until(f"revision {last} on the page", lambda: _newest(page) >= last, seconds=30, look=0.1)
        found = page.evaluate("window.benchSeen")
    finally:
        stop.set()
        looking.join()
    return job, seen, {int(revision): float(at) for revision, at in found.items()}


def _newest(page: Page) -> int:
    return max((int(each) for each in page.evaluate("Object.keys(window.benchSeen)")), default=0)


def _look(site: KubeSite, job: str, seen: Seen, stop: threading.Event) -> None:
    """What the database says, looked at every 5 ms."""
    with site.database() as database:
        while not stop.is_set():
            for revision, phase, plain in database.execute(QUERY, (job,)).fetchall():
                moment = time.time()
                if phase in PHASES and phase not in seen.stored:
                    seen.revision[phase], seen.stored[phase] = revision, moment
                for each in plain:
                    seen.plain.setdefault(each, moment)
            time.sleep(LOOK)


def phase_of(pod: Object) -> tuple[str, str] | None:
    """(job, phase) of a pod of the portal in a phase that counts."""
    job = pod["metadata"].get("labels", {}).get("beamtime/job")
    phase = pod.get("status", {}).get("phase")
    return (job, phase) if job and phase in PHASES else None


def _pods(site: KubeSite) -> RawWatch:
    def name(kind: str, pod: Object) -> str | None:
        found = phase_of(pod)
        return " ".join(found) if found and kind != "DELETED" else None

    return RawWatch(site.cluster.kubeconfig, f"/api/v1/namespaces/{site.namespace}/pods", name)


@contextlib.contextmanager
def _plain_watcher(bench: Bench, site: KubeSite) -> Iterator[None]:
    """The reference, in a process of its own: `tests.bench.barewatch`."""
    command = [
        sys.executable,
        "-m",
        "tests.bench.barewatch",
        str(site.cluster.kubeconfig),
        site.namespace,
        site.postgres.url,
    ]
    program = Program(command, environment=own_environment(), log=bench.folder / "barewatch.log")
    try:
        until("the bare watcher", lambda: "watching" in program.tail(), seconds=30)
        yield
    finally:
        program.end()
