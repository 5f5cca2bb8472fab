"""Opening a finished log of 1 GiB, and jumping to a line in its middle."""

from __future__ import annotations

import contextlib
import random
import subprocess
import time
from collections.abc import Iterator

from playwright.sync_api import Page

from tests.bench.biglog import BigLog, Reader, big_log
from tests.bench.chromium import signed_in
from tests.bench.context import Bench
from tests.bench.processes import until
from tests.bench.table import Row, ms, percentile, spread
from tests.cluster.testbed import images
from tests.cluster.testbed.cluster import Cluster

TIMES, JUMP = 2.0, 0.300
TAIL = 1000
# Lines in the pod that is asked for its last ones; what lies before them does not matter to a read from the end.
IN_POD = 4 * TAIL
POD = "bench-tail"
# When the log's last line has been painted inside its box. A task behind a frame comes after the frame's painting.
PAINTED = """
addEventListener("DOMContentLoaded", () => {
  const look = () => {
    const row = [...document.querySelectorAll(".bt-log-row[id]")].at(-1);
    const box = row && row.closest(".bt-log").getBoundingClientRect();
    const at = row && row.getBoundingClientRect();
    if (at && at.top >= box.top && at.bottom <= box.bottom) {
      setTimeout(() => { window.benchPainted = [row.id, performance.now() / 1000]; });
    } else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
});
"""
# Seconds; null as long as the browser has not noted it down.
FIRST = "(performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null) / 1000 || null"
# From Enter in the field "Line" until that line has been painted inside the box.
TO_LINE = """(n) => new Promise((done) => {
  const field = document.querySelector("[data-log-line]");
  const begin = performance.now();
  field.value = String(n);
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  const look = () => {
    const row = document.getElementById(`L${n}`);
    const box = row && row.closest(".bt-log").getBoundingClientRect();
    const at = row && row.getBoundingClientRect();
    if (at && at.top >= box.top && at.bottom <= box.bottom) {
      setTimeout(() => done((performance.now() - begin) / 1000));
    } else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


def measure(bench: Bench) -> list[Row]:
    """One row for opening, two for jumping."""
    log = bench.shared(big_log)
    with signed_in(log.site.address, PAINTED) as page:
        opened = _opening(bench, log, page)
        jumps = _jumping(bench, log, page)
    return [opened, *jumps]


def _opening(bench: Bench, log: BigLog, page: Page) -> Row:
    count = bench.count(25, 4)
    with _pod(bench.kube().cluster, log) as cluster:
        plain = [_tail(cluster) for _ in range(count)]
    found, first = [], []
    for number in range(count + 1):
        page.goto(log.page)
        until("the last line on the screen", lambda: page.evaluate("window.benchPainted"), seconds=30, look=0.05)
        which, at = page.evaluate("window.benchPainted")
        assert which == f"L{log.lines}"
        # The first one fills the browser's cache.
        if number:
            found.append(at)
            until("the first paint", lambda: page.evaluate(FIRST), seconds=10, look=0.05)
            first.append(float(page.evaluate(FIRST)))
    ratio = percentile(found, 0.5) / percentile(plain, 0.5)
    return Row(
        f"finished log of {log.words}: its last line is painted",
        f"{TIMES:.1f} times `kubectl logs --tail={TAIL}`",
        f"{spread(found, 0.5, 0.95)}; first paint p50 {ms(percentile(first, 0.5))}",
        ratio <= TIMES,
        f"`kubectl logs --tail={TAIL}`: {spread(plain, 0.5, 0.95)}",
        ratio,
    )


def _jumping(bench: Bench, log: BigLog, page: Page) -> list[Row]:
    middle, chance = log.lines // 2, random.Random(7)
    # The middle itself, and places that nobody has looked at before.
    wanted = [middle, *(chance.randrange(1000, log.lines) for _ in range(bench.count(40, 5)))]
    plain = [_sed(log, n) for n in wanted[:3]]
    page.evaluate(TO_LINE, 1)
    shown = [float(page.evaluate(TO_LINE, n)) for n in wanted]
    reader = Reader(log.site)
    read = []
    for n in reversed(wanted):
        begin = time.perf_counter()
        answer = reader.get(f"streams/{log.stream}/lines/?from={n - 100}&limit=500")
        read.append(time.perf_counter() - begin)
        assert answer["lines"][100]["text"].startswith(f"[rank{n % 8}] step {n}/")
    words = f"jump to line {middle:,} of {log.lines:,}, and to {len(wanted) - 1} others"
    return [
        Row(
            f"{words}: {kind}",
            ms(JUMP),
            f"line {middle:,}: {ms(own)}; all: {spread(found, 0.5, 0.95)}",
            max(own, percentile(found, 0.95)) <= JUMP,
            f"`sed` over the same file: p50 {ms(percentile(plain, 0.5))}",
            percentile(found, 0.5) / percentile(plain, 0.5),
        )
        for kind, found, own in (("API, 500 lines", read, read[-1]), ("on the page", shown, shown[0]))
    ]


def _sed(log: BigLog, n: int) -> float:
    """Seconds for the same 500 lines by hand."""
    begin = time.perf_counter()
    subprocess.run(["sed", "-n", f"{n - 100},{n + 399}p;{n + 400}q", log.file], capture_output=True, check=True)
    return time.perf_counter() - begin


def _tail(cluster: Cluster) -> float:
    begin = time.perf_counter()
    text = cluster.kubectl_bytes("logs", f"--tail={TAIL}", POD)
    found = time.perf_counter() - begin
    assert text.count(b"\n") == TAIL
    return found


@contextlib.contextmanager
def _pod(cluster: Cluster, log: BigLog) -> Iterator[Cluster]:
    """A pod that has said the log's last lines and is over."""
    text = subprocess.run(["tail", "-n", str(IN_POD), log.file], capture_output=True, check=True).stdout.decode()
    container = {
        "name": "main",
        "image": images.BUSYBOX,
        "command": ["cat", "/text/log"],
        "volumeMounts": [{"name": "text", "mountPath": "/text"}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD, "namespace": "default"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            "volumes": [{"name": "text", "configMap": {"name": POD}}],
        },
    }
    given = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": POD, "namespace": "default"},
        "data": {"log": text},
    }
    cluster.apply(given, pod)
    try:
        phase = ("get", "pod", POD, "-o", "jsonpath={.status.phase}")
        until("the pod to be over", lambda: cluster.kubectl(*phase) == "Succeeded", seconds=60, look=0.2)
        yield cluster
    finally:
        cluster.kubectl("delete", "pod,configmap", POD, "--wait=false")
