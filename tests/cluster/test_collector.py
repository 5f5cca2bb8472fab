"""Logs by way of the collector on the node: exact across rotations, whoever is killed."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .portal import Portal
from .running import ROOT
from .testbed.cluster import Cluster

TOKEN = "the collector's token"
SHIPPED = ROOT / "deploy" / "kubernetes" / "collector"
WORDS = "of a log that is rotated while both its readers are killed"
# Numbered lines in bursts, a file each few seconds; then quietly on, past the last rotation.
BURSTS = f"""i=0
until [ -e /tmp/go ]; do
  seq $((i + 1)) $((i + 1500)) | sed 's/$/ {WORDS}/'
  i=$((i + 1500))
  sleep 0.8
done
for quiet in 1 2 3 4 5; do
  sleep 2
  i=$((i + 1))
  echo "$i {WORDS}"
done
"""


class Collector:
    """The real one, as it is shipped, on this machine, which is the node."""

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


@pytest.fixture
def collector(portal: Portal, own_cluster: Cluster, tmp_path: Path) -> Iterator[Collector]:
    own_cluster.set_kubelet(containerLogMaxSize="256Ki", containerLogMonitorInterval="3s")
    portal.stop("web")
    portal.start("web", BEAMTIME_INGEST_TOKENS=TOKEN)
    program = own_cluster.bed.setting.builds.program("collector")
    found = Collector(program, own_cluster, portal.address, tmp_path)
    found.start()
    yield found
    found.close()


def stream_of(portal: Portal, job: str) -> dict[str, Any]:
    (found,) = portal.job(job)["streams"]
    return dict(found)


def test_case_05_ten_kills_of_the_collector_and_the_ingest_over_many_rotations_lose_and_double_nothing(
    portal: Portal, collector: Collector
) -> None:
    job = portal.submit(BURSTS)
    portal.wait("its first lines", job, lambda found: found["streams"] and found["streams"][0]["lines"] > 0)
    portal.wait("the collector", job, lambda _: stream_of(portal, job)["source"] == "collector")
    for turn in range(10):
        stored = stream_of(portal, job)["lines"]
        if turn % 3 != 0:
            portal.kill("web")
        if turn % 3 != 1:
            # Every third time in the absence of the portal, with much under way.
            collector.kill()
            collector.start()
        if turn % 3 != 0:
            portal.start("web", BEAMTIME_INGEST_TOKENS=TOKEN)
        # Whatever was killed, the log goes on.
        portal.wait(
            f"lines behind kill {turn + 1}",
            job,
            lambda _, stored=stored: stream_of(portal, job)["lines"] > stored + 1_500,  # type: ignore[misc]
            seconds=120,
        )
    portal.release(job)
    portal.wait_state(job, "succeeded", seconds=120)
    (stream,) = portal.wait_log(job, seconds=240)

    text = portal.member.download(stream["id"])
    lines = int(text.splitlines()[-1].split()[0])
    expected = "".join(f"{number} {WORDS}\n" for number in range(1, lines + 1)).encode()
    assert stream["gaps"] == []
    assert (lines % 1_500, stream["lines"]) == (5, lines)
    assert hashlib.sha256(text).hexdigest() == hashlib.sha256(expected).hexdigest()
    # Some 100 bytes a line in the runtime's files of a quarter of a mebibyte and more.
    rotations = int(portal.psql(ROTATIONS.format(stream=stream["id"])))
    assert rotations >= 5


# Each file begins at its offset 0: [first time, offset, last time, end].
ROTATIONS = """SELECT count(*) FROM logs_intake, jsonb_array_elements(spans) AS span
WHERE stream_id = '{stream}' AND (span->>1)::bigint = 0"""
