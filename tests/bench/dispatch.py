"""From the answer to a submission to the Job's arrival at a raw watch, five a second; broker up and down."""

from __future__ import annotations

import copy
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kubernetes.client import BatchV1Api

from tests.bench.context import Bench
from tests.bench.kube import KubeSite
from tests.bench.processes import BenchError
from tests.bench.rawwatch import Object, RawWatch, api
from tests.bench.table import Row, ms, percentile, spread

A_SECOND = 5
P50, P99 = 0.100, 0.500
# BEAMTIME_SWEEP as it comes.
SWEEP = 5.0
JOB_LABEL = "beamtime/job"


def measure(bench: Bench) -> list[Row]:
    """Two rows; the plain loop stands beside both."""
    site = bench.kube()
    rows = []
    with site.held():
        plain = _plain(bench, site)
        rows.append(_row("broker up", _submitted(site, bench.count(200, 10)), plain, {0.50: P50, 0.99: P99}))
        site.redis.stop()
        try:
            late = _submitted(site, bench.count(50, 5))
        finally:
            site.redis.start()
        rows.append(_row("broker down", late, plain, {1.00: SWEEP + 1}))
        site.until_settled()
    return rows


def _row(words: str, found: list[float] | None, plain: list[float], most: dict[float, float]) -> Row:
    names = {share: f"p{share * 100:.0f}" if share < 1 else "slowest" for share in most}
    target = ", ".join(f"{names[share]} {ms(limit)}" for share, limit in most.items())
    reference = f"create called → there, bare client: {spread(plain, 0.5, 0.99)}"
    measure = f"submit answered → Kubernetes Job created, {A_SECOND} a second, {words}"
    if found is None:
        return Row(measure, target, "no Job before the broker was back", False, reference)
    met = all(percentile(found, share) <= limit for share, limit in most.items())
    measured = f"{spread(found, 0.5, 0.99)}, slowest {ms(max(found))}"
    return Row(measure, target, measured, met, reference, percentile(found, 0.5) / percentile(plain, 0.5))


def _submitted(site: KubeSite, count: int) -> list[float] | None:
    """Seconds from each answer to its Job; None if Jobs do not come."""
    client, body = site.client(), site.body("true")

    def one(number: int) -> tuple[str, float]:
        job = client.post("jobs/", body)["id"]
        return str(job), time.time()

    with _jobs(site) as watch:
        answered = dict(_at_pace(one, count))
        try:
            watch.until_seen(set(answered), seconds=4 * SWEEP)
        except BenchError:
            return None
        return [watch.at[job] - moment for job, moment in answered.items()]


def _plain(bench: Bench, site: KubeSite) -> list[float]:
    """The same manifest by the Python client at the same pace: what the API server and the watch cost by themselves."""
    model = as_anybody(site.inside("manifest", site.team))
    site.until_settled()
    batch: Any = BatchV1Api(api(site.cluster.kubeconfig))

    def one(number: int) -> tuple[str, float]:
        body = named(model, f"plain-{secrets.token_hex(6)}")
        begin = time.time()
        batch.create_namespaced_job(site.namespace, body)
        return body["metadata"]["name"], begin

    with _jobs(site) as watch:
        begun = dict(_at_pace(one, bench.count(200, 10)))
        watch.until_seen(set(begun), seconds=60)
        return [watch.at[name] - moment for name, moment in begun.items()]


def as_anybody(manifest: Object) -> Object:
    """The manifest without the labels by which the portal knows its own."""
    found = copy.deepcopy(manifest)
    for place in (found["metadata"], found["spec"]["template"]["metadata"]):
        place["labels"] = {name: value for name, value in place["labels"].items() if not name.startswith("beamtime/")}
    return found


def named(manifest: Object, name: str) -> Object:
    """The same under another name."""
    return manifest | {"metadata": manifest["metadata"] | {"name": name}}


def _jobs(site: KubeSite) -> RawWatch:
    """When each Job came: the portal's by the id of the job, others by their name."""

    def name(kind: str, job: Object) -> str | None:
        about = job["metadata"]
        return about.get("labels", {}).get(JOB_LABEL) or about["name"] if kind == "ADDED" else None

    return RawWatch(site.cluster.kubeconfig, f"/apis/batch/v1/namespaces/{site.namespace}/jobs", name)


def _at_pace(deed: Callable[[int], tuple[str, float]], count: int) -> list[tuple[str, float]]:
    """Begin one after the other in even steps, however long each takes."""
    begin = time.monotonic()
    with ThreadPoolExecutor(32) as pool:
        pending = []
        for number in range(count):
            time.sleep(max(0.0, begin + number / A_SECOND - time.monotonic()))
            pending.append(pool.submit(deed, number))
        return [each.result() for each in pending]
