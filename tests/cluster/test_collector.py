"""Logs by way of the collector on the node: exact across rotations, whoever is killed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .portal import Portal
from .running import ROOT
from .testbed.cluster import Cluster

TOKEN = "the collector's token"
CONFIGURATION = ROOT / "deploy" / "kubernetes" / "collector" / "collector.yaml"
# Numbered lines, as fast as a shell writes them, in bursts; 400,000 lines of some 30 bytes are a dozen rotations.
BURSTS = """i=0
while [ $i -lt 400000 ]; do
  seq $((i + 1)) $((i + 10000)) | sed 's/$/ of a log that is rotated/'
  i=$((i + 10000))
  sleep 0.7
done
"""


class Collector:
    """The real one, with the shipped configuration, on this machine, which is the node."""

    def __init__(self, program: str, cluster: Cluster, address: str, folder: Path) -> None:
        self._command = [program, f"--config={CONFIGURATION}"]
        self._environment = {
            "PATH": os.environ["PATH"],
            "BEAMTIME_ADDRESS": address,
            "BEAMTIME_INGEST_TOKEN": TOKEN,
            "BEAMTIME_POD_LOGS": str(cluster.bed.setting.layout.run / "podlogs"),
            "BEAMTIME_COLLECTOR_STATE": str(folder / "state"),
        }
        self._log = folder / "collector.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.kill()


@pytest.fixture
def collector(portal: Portal, own_cluster: Cluster, tmp_path: Path) -> Iterator[Collector]:
    own_cluster.set_kubelet(containerLogMaxSize="1Mi")
    portal.stop("web")
    portal.start("web", BEAMTIME_INGEST_TOKENS=TOKEN)
    program = own_cluster.bed.setting.builds.program("collector")
    found = Collector(program, own_cluster, portal.address, tmp_path)
    found.start()
    yield found
    found.close()


def test_case_05_rotations_and_ten_kills_of_either_side_lose_and_double_nothing(
    portal: Portal, collector: Collector
) -> None:
    job = portal.submit(BURSTS)
    portal.wait_state(job, "running")
    for number in range(10):
        time.sleep(2)
        if number % 2:
            portal.kill("web")
            portal.start("web", BEAMTIME_INGEST_TOKENS=TOKEN)
        else:
            collector.kill()
            collector.start()

    portal.wait_state(job, "succeeded", seconds=180)
    (stream,) = portal.wait_log(job, seconds=180)

    expected = "".join(f"{number} of a log that is rotated\n" for number in range(1, 400_001)).encode()
    text = portal.member.download(stream["id"])
    assert (stream["source"], stream["lines"], stream["gaps"]) == ("collector", 400_000, [])
    assert hashlib.sha256(text).hexdigest() == hashlib.sha256(expected).hexdigest()
