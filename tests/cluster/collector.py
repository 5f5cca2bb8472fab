"""The collector on the node as it is shipped, a pod whose log it delivers, and what is done to both."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import yaml

from .running import ROOT, Running
from .testbed.cluster import Cluster

TOKEN = "the collector's token"
SHIPPED = ROOT / "deploy" / "kubernetes" / "collector"
WORDS = "of a log that is rotated while both its readers are killed"
BURST = 1_500
# Numbered lines in bursts, a file each few seconds; then quietly on, past the last rotation.
BURSTS = f"""i=0
until [ -e /tmp/go ]; do
  seq $((i + 1)) $((i + {BURST})) | sed 's/$/ {WORDS}/'
  i=$((i + {BURST}))
  sleep 0.8
done
for quiet in 1 2 3 4 5; do
  sleep 2
  i=$((i + 1))
  echo "$i {WORDS}"
done
"""
QUIET = 5
# Each file begins at its offset 0: [first time, offset, last time, end].
ROTATIONS = """SELECT count(*) FROM logs_intake, jsonb_array_elements(spans) AS span
WHERE stream_id = '{stream}' AND (span->>1)::bigint = 0"""


class Collector:
    """The real one, as it is shipped, on this machine, which is the node. `address`: where the portal is."""

    def __init__(self, program: str, cluster: Cluster, address: str, folder: Path) -> None:
        (daemon_set,) = (
            each for each in yaml.safe_load_all((SHIPPED / "daemonset.yaml").read_text()) if each["kind"] == "DaemonSet"
        )
        (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
        script = container["command"][3].replace("/otelcol-contrib", program)
        arguments = [each.replace("/etc/collector", str(SHIPPED)) for each in container["args"]]
        self._command = ["sh", "-c", script, "collector", *arguments]
        self._environment = {
            "PATH": os.environ["PATH"],
            "BEAMTIME_ADDRESS": address,
            "BEAMTIME_INGEST_TOKEN": TOKEN,
            "BEAMTIME_POD_LOGS": str(cluster.bed.setting.layout.run / "podlogs"),
            "BEAMTIME_COLLECTOR_STATE": str(folder / "state"),
        }
        self.log = folder / "collector.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text(errors="replace")[-2000:]
        self._process.kill()
        self._process.wait()
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def numbered(lines: int) -> bytes:
    """What such a pod has written."""
    return "".join(f"{number} {WORDS}\n" for number in range(1, lines + 1)).encode()


def kill_in_turns(site: Running, collector: Collector, stored: Callable[[], int], *, kills: int) -> None:
    """Kill the collector, the portal's web process, or both, so often, each time while lines are under way.

    `stored`: how many lines of the pod's log are; each time they must go on.
    """
    for turn in range(kills):
        before = stored()
        if turn % 3 != 0:
            site.kill("web")
        if turn % 3 != 1:
            # Every third time in the absence of the portal, with much under way.
            collector.kill()
            collector.start()
        if turn % 3 != 0:
            site.start("web", BEAMTIME_INGEST_TOKENS=TOKEN)
        site.cluster.wait_for(f"lines behind kill {turn + 1}", partial(_has_more, stored, before + BURST), seconds=120)


def _has_more(stored: Callable[[], int], than: int) -> bool:
    return stored() > than
