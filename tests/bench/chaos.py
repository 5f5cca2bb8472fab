"""1,000 submissions while answers to creations are lost and processes are killed: what is there afterwards."""

from __future__ import annotations

import collections
import random
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.client import BatchV1Api
from kubernetes.client.exceptions import ApiException

from tests.bench.context import Bench
from tests.bench.dispatch import as_anybody
from tests.bench.kube import PROCESSES, KubeSite
from tests.bench.processes import until
from tests.bench.rawwatch import Object, api
from tests.bench.table import Row
from tests.cluster.client import Client
from tests.cluster.wire import Wire

LOST = 0.1
PROGRAMS = 4


class LossyWire(Wire):
    """Loses the answer to every tenth creation of a Job, by chance, after the API server has made it."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        super().__init__(kubeconfig, folder)
        self._chance = random.Random(11)

    def _loss(self, method: str, path: str) -> float | None:
        if method == "POST" and path.endswith("/jobs") and self._chance.random() < LOST:
            return 0.0
        return super()._loss(method, path)


def measure(bench: Bench) -> list[Row]:
    """One row."""
    site = bench.kube()
    count, kills = bench.count(1000, 40), bench.count(20, 4)
    with site.held():
        model = as_anybody(site.inside("manifest", site.team))
        site.until_settled()
        before = len(_objects(site)), _rows(site)
        folder = bench.fresh("wire")
        folder.mkdir()
        wire = LossyWire(site.kubeconfig("worker"), folder)
        with wire.open():
            wanted, there = _careless(site, wire, model, count // 5)
            begun = len(wire.lost)
            site.kill("worker")
            site.start("worker", **_through(wire))
            bench.say(f"{count} submissions, {kills} kills")
            killed = _under_fire(bench, site, wire, count, kills)
            until("every row to have its Job", lambda: not _unmade(site), seconds=180, look=0.5)
            site.kill("worker")
            unanswered = len(wire.lost) - begun
        site.start("worker")
        site.until_settled()
        objects, rows = _objects(site), _rows(site) - before[1]
    by_job = collections.Counter(each["metadata"]["labels"]["beamtime/job"] for each in objects)
    doubled = sum(number > 1 for number in by_job.values())
    found = (len(objects) - before[0], rows, doubled, len(_ids(site) - set(by_job)))
    words = ", ".join(f"{number} {name}" for name, number in sorted(killed.items()))
    return [
        Row(
            f"{count:,} submits through the API, every tenth creation unanswered, {kills} `kill -9`",
            f"{count:,} Jobs, {count:,} rows, 0 doubled, 0 lost",
            f"{found[0]:,} Jobs, {found[1]:,} rows, {found[2]} doubled, {found[3]} lost "
            f"({unanswered} creations unanswered; killed: {words})",
            found == (count, count, 0, 0),
            f"a loop with generated names that repeats what was not answered, {wanted} Jobs: {there - wanted} too many",
        )
    ]


def _careless(site: KubeSite, wire: Wire, model: Object, count: int) -> tuple[int, int]:
    """(Jobs wanted, Jobs there) for a loop that takes no answer for no Job, through the same wire."""
    batch: Any = BatchV1Api(api(wire.kubeconfig))
    about = {name: value for name, value in model["metadata"].items() if name != "name"}
    body = model | {"metadata": about | {"generateName": "careless-"}}
    for _ in range(count):
        while True:
            try:
                batch.create_namespaced_job(site.namespace, body)
            except (urllib3.exceptions.HTTPError, ApiException, OSError):
                continue
            break
    names: list[Object] = site.cluster.kubectl_json("get", "jobs", "-n", site.namespace)["items"]
    return count, sum(each["metadata"]["name"].startswith("careless-") for each in names)


def _under_fire(bench: Bench, site: KubeSite, wire: Wire, count: int, kills: int) -> dict[str, int]:
    """Submit everything with four programs, and kill a process now and then; how often which one."""
    left = iter(range(count))
    done = threading.Event()
    progress = [0]
    killed: collections.Counter[str] = collections.Counter()
    chance = random.Random(3)

    def program() -> None:
        client = site.client()
        for number in left:
            # A killed process takes seconds to come back; without waiting the last kills would meet no submission.
            until("a kill", partial(_so_many, killed, number * kills // count), seconds=600, look=0.02)
            _insist(client, site)
            progress[0] += 1

    def kill() -> None:
        for number in range(kills):
            # Spread over the submissions, so that none falls into the quiet afterwards.
            due = number * count // (kills + 1)
            until("the next kill", partial(_reached, progress, due, done), seconds=600)
            name = chance.choice(PROCESSES)
            site.kill(name)
            killed[name] += 1
            bench.say(f"killed {name} after {progress[0]} submissions")
            site.start(name, **(_through(wire) if name == "worker" else {}))

    with ThreadPoolExecutor(PROGRAMS + 1) as pool:
        killer = pool.submit(kill)
        programs = [pool.submit(program) for _ in range(PROGRAMS)]
        for each in programs:
            each.result()
        done.set()
        killer.result()
    return dict(killed)


def _so_many(killed: collections.Counter[str], wanted: int) -> bool:
    return killed.total() >= wanted


def _reached(progress: list[int], due: int, done: threading.Event) -> bool:
    return progress[0] >= due or done.is_set()


def _through(wire: Wire) -> dict[str, str]:
    """The worker's environment; it alone makes Jobs."""
    return {"BEAMTIME_CLUSTER_KUBECONFIG": str(wire.kubeconfig)}


def _insist(client: Client, site: KubeSite) -> None:
    """One submission under one key, sent again until it is answered, as a careful program does."""
    key = uuid.uuid4().hex
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            answer = client.call("POST", "jobs/", site.body("true"), {"Idempotency-Key": key})
        except OSError:
            time.sleep(0.2)
            continue
        if answer.status == 201:
            return
        assert answer.status >= 500, f"{answer.status}: {answer.body.decode(errors='replace')}"
        time.sleep(0.2)
    raise AssertionError("a submission was not answered within two minutes")


def _objects(site: KubeSite) -> list[Object]:
    """Every Job of the portal that is in the cluster, wherever."""
    found: list[Object] = site.cluster.kubectl_json("get", "jobs", "-A", "-l", f"beamtime/instance={site.instance}")[
        "items"
    ]
    return found


def _rows(site: KubeSite) -> int:
    return site.asked("SELECT count(*) FROM jobs_job")


def _unmade(site: KubeSite) -> int:
    return site.asked("SELECT count(*) FROM jobs_attempt WHERE object_uid = '' AND state IN ('submitted', 'queued')")


def _ids(site: KubeSite) -> set[str]:
    """Jobs that are not over: each must have its object."""
    return set(site.psql("SELECT id FROM jobs_job WHERE ended_at IS NULL").split())
