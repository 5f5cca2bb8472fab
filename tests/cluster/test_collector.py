"""Logs by way of the collector on the node: exact across rotations, whoever is killed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .collector import BURST, BURSTS, QUIET, ROTATIONS, TOKEN, Collector, kill_in_turns, numbered
from .portal import Portal
from .testbed.cluster import Cluster


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
    kill_in_turns(portal, collector, lambda: stream_of(portal, job)["lines"], kills=10)
    portal.release(job)
    portal.wait_state(job, "succeeded", seconds=120)
    (stream,) = portal.wait_log(job, seconds=240)

    text = portal.member.download(stream["id"])
    lines = int(text.splitlines()[-1].split()[0])
    assert stream["gaps"] == []
    assert (lines % BURST, stream["lines"]) == (QUIET, lines)
    assert hashlib.sha256(text).hexdigest() == hashlib.sha256(numbered(lines)).hexdigest()
    # Some 100 bytes a line in the runtime's files of a quarter of a mebibyte and more.
    rotations = int(portal.psql(ROTATIONS.format(stream=stream["id"])))
    assert rotations >= 5
