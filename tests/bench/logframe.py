"""From a line at the raw follow of the cluster's log endpoint to its row on the open page, at 200 lines a second."""

from __future__ import annotations

import calendar
import time
from pathlib import Path
from typing import Any

from tests.bench.chromium import signed_in
from tests.bench.context import Bench
from tests.bench.kube import KubeSite
from tests.bench.processes import BenchError, until
from tests.bench.rawwatch import RawLines
from tests.bench.table import Row, ms, percentile, spread
from tests.cluster.testbed import images

RATE = 200
MOST = {0.5: 0.080, 0.99: 0.300}
# Lines that come while the page is still opening do not count.
WARM = 2 * RATE
PROGRAM = """exec python3 -u - <<'END'
import time
begin = time.monotonic()
for n in range({count}):
    time.sleep(max(0, begin + n / {rate} - time.monotonic()))
    print("line", n + 1, "of a training that says something two hundred times a second", flush=True)
time.sleep(3)
END
"""
# When each row was put into the page; set up before the page's own scripts run.
OBSERVE = """
window.benchLines = {};
new MutationObserver((records) => {
  const at = (performance.timeOrigin + performance.now()) / 1000;
  for (const record of records) for (const node of record.addedNodes) {
    if (/^L\\d+$/.test(node.id || "")) window.benchLines[node.id.slice(1)] ??= at;
  }
}).observe(document, { subtree: true, childList: true });
"""


def measure(bench: Bench) -> list[Row]:
    """One row."""
    site = bench.kube()
    count = bench.count(40, 15) * RATE
    body = site.body(PROGRAM.format(count=count, rate=RATE))
    body["values"]["image"] = images.PYTHON
    with signed_in(site.address, OBSERVE) as page:
        job = str(site.client().post("jobs/", body)["id"])
        pod = _running(site, job)
        with RawFollow(site.cluster.kubeconfig, site.namespace, pod) as raw:
            page.goto(f"{site.address}/teams/{site.team}/jobs/{job}/log/")
            opened = len(raw.at)
            until("every line at the raw follow", lambda: len(raw.at) == count, seconds=count / RATE + 60, look=0.2)
            newest = "Math.max(0, ...Object.keys(window.benchLines))"
            until("every line on the page", lambda: page.evaluate(newest) == count, seconds=30, look=0.2)
            shown: dict[str, float] = page.evaluate("window.benchLines")
    wanted = range(opened + WARM, count + 1)
    found = [shown[str(n)] - raw.at[n] for n in wanted if str(n) in shown]
    if not found:
        raise BenchError(f"of {count} lines {opened} had come before the page was open: too few are left")
    plain = [raw.at[n] - raw.written[n] for n in wanted]
    missing = len(wanted) - len(found)
    return [
        Row(
            f"line at the raw follow → row on the open page, {RATE} lines/s",
            ", ".join(f"p{share * 100:.0f} {ms(limit)}" for share, limit in MOST.items()),
            spread(found, *MOST) + (f"; {missing} rows never shown" if missing else ""),
            not missing and all(percentile(found, share) <= limit for share, limit in MOST.items()),
            f"line written → raw follow: p50 {percentile(plain, 0.5) * 1000:.1f} ms, p99 {ms(percentile(plain, 0.99))}",
            percentile(found, 0.5) / percentile(plain, 0.5),
        )
    ]


def _running(site: KubeSite, job: str) -> str:
    """The name of the job's pod, once it runs."""
    words = ("get", "pods", "-n", site.namespace, "-l", f"beamtime/job={job}")

    def pods() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = site.cluster.kubectl_json(*words)["items"]
        return found

    until(
        "the pod to run", lambda: [pod for pod in pods() if pod["status"]["phase"] == "Running"], seconds=60, look=0.1
    )
    return str(pods()[0]["metadata"]["name"])


class RawFollow(RawLines):
    """One HTTP request for the log: `at` has each line's arrival, `written` its own time."""

    def __init__(self, kubeconfig: Path, namespace: str, pod: str) -> None:
        super().__init__(kubeconfig)
        self.at: dict[int, float] = {}
        self.written: dict[int, float] = {}
        self._log = f"/api/v1/namespaces/{namespace}/pods/{pod}/log?follow=true&timestamps=true"

    def _path(self) -> str:
        return self._log

    def _take(self, line: bytes, moment: float) -> None:
        stamp, _, text = line.decode().partition(" ")
        number = int(text.split(" ", 2)[1])
        self.at[number], self.written[number] = moment, _seconds(stamp)


def _seconds(stamp: str) -> float:
    """Of an RFC 3339 time in UTC with any number of digits behind the point."""
    whole, _, rest = stamp.rstrip("Z").partition(".")
    parsed = time.strptime(f"{whole} UTC", "%Y-%m-%dT%H:%M:%S %Z")
    return calendar.timegm(parsed) + float(f"0.{rest or 0}")
