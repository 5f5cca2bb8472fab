"""A backlog of 1,000 submitted rows becomes Jobs by one worker; beside a bare sequential loop of creations."""

from __future__ import annotations

import time
from typing import Any

from kubernetes.client import BatchV1Api

from tests.bench.context import Bench
from tests.bench.dispatch import JOB_LABEL, as_anybody, named
from tests.bench.kube import KubeSite
from tests.bench.processes import until
from tests.bench.rawwatch import Object, RawWatch, api
from tests.bench.table import Row

TARGET = 2.0


def measure(bench: Bench) -> list[Row]:
    """One row. The bare loop runs before and after, because a cluster grows slower as it fills."""
    site = bench.kube()
    count = bench.count(1000, 50)
    with site.held():
        model = as_anybody(site.inside("manifest", site.team))
        site.until_settled()
        site.stop("worker")
        before = _plain(site, model, count // 2, "before")
        ours = _backlog(bench, site, count)
        after = _plain(site, model, count // 2, "after")
    plain = 2 / (1 / before + 1 / after)
    return [
        Row(
            f"a backlog of {count:,} submitted rows → Jobs, one worker",
            f"{TARGET} times a bare sequential loop",
            f"{ours:.0f} Jobs a second",
            ours / plain >= TARGET,
            f"Python client, one by one: {plain:.0f} Jobs a second",
            ours / plain,
        )
    ]


def _backlog(bench: Bench, site: KubeSite, count: int) -> float:
    """Jobs a second from the first to the last, with all the hints of the rows waiting in the broker too."""

    def name(kind: str, job: Object) -> str | None:
        return job["metadata"].get("labels", {}).get(JOB_LABEL) if kind == "ADDED" else None

    bench.say(f"submitting {count} jobs while no worker runs")
    site.inside("submit", site.team, count, "true")
    with RawWatch(site.cluster.kubeconfig, f"/apis/batch/v1/namespaces/{site.namespace}/jobs", name) as watch:
        site.start("worker")
        until(f"{count} Jobs", lambda: len(watch.at) >= count, seconds=300)
        moments = sorted(watch.at.values())
    site.until_settled()
    return (len(moments) - 1) / (moments[-1] - moments[0])


def _plain(site: KubeSite, model: Object, count: int, word: str) -> float:
    batch: Any = BatchV1Api(api(site.cluster.kubeconfig))
    begin = time.monotonic()
    for number in range(count):
        batch.create_namespaced_job(site.namespace, named(model, f"plain-{word}-{number}"))
    return count / (time.monotonic() - begin)
