"""Logs whose files are rotated while they are read: every line once, or a gap that says where lines are missing."""

from __future__ import annotations

import hashlib
import itertools
import re
import time
from typing import Any

import pytest

from .line import Line
from .portal import Portal, moment
from .testbed.cluster import Cluster

# The kubelet looks every three seconds and rotates what is larger.
SMALL = {"containerLogMaxSize": "256Ki", "containerLogMaxFiles": 3, "containerLogMonitorInterval": "3s"}

COUNT_TO = """i=0
while [ $i -lt {lines} ]; do
  seq $((i + 1)) $((i + {step})) | sed 's/$/ {words}/'
  i=$((i + {step}))
  sleep {pause}
done
"""

WORDS = "x" * 90
# Some 250 lines a second: a file is full after twenty seconds and more.
YOUNG_SECONDS = 8
COUNT_UNTIL_TOLD = """i=0
until [ -e /tmp/go ]; do
  seq $((i + 1)) $((i + 25))
  i=$((i + 25))
  sleep 0.1
done
"""


def counted(lines: int) -> bytes:
    return "".join(f"{number}\n" for number in range(1, lines + 1)).encode()


def first_record(portal: Portal, job: str) -> bytes:
    """Where the present file of the job's container begins, as kubectl sees it."""
    about = portal.kube_pods(job)[0]["metadata"]
    where = ("-n", about["namespace"], about["name"])
    return portal.cluster.kubectl_bytes("logs", *where, "--timestamps", "--limit-bytes=30")


def wait_for_rotation(portal: Portal, job: str) -> None:
    before = first_record(portal, job)

    def changed() -> bool:
        now = first_record(portal, job)
        return bool(now) and now != before

    portal.cluster.wait_for("a rotation", changed, seconds=60)


def wait_for_a_young_file(portal: Portal, job: str) -> None:
    """So that no rotation falls into the seconds for which nobody reads: what goes then, nobody can have."""
    first = first_record(portal, job)
    if not first or time.time() - moment(first[:26].decode() + "+00:00").timestamp() > YOUNG_SECONDS:
        wait_for_rotation(portal, job)


@pytest.fixture
def rotating(portal: Portal, own_cluster: Cluster) -> Portal:
    own_cluster.set_kubelet(**SMALL)
    return portal


def test_case_05_fifty_cuts_and_three_dead_watchers_over_many_rotations_cost_no_line_in_silence(
    rotating: Portal,
) -> None:
    portal = rotating
    portal.kill("watch")
    with Line(portal.kubeconfig("watch"), portal.folder).open() as line:
        changes = {"BEAMTIME_CLUSTER_KUBECONFIG": str(line.kubeconfig), "BEAMTIME_LEASE": "3"}
        portal.start("watch", **changes)
        job = portal.submit(COUNT_UNTIL_TOLD, cores=0.5)
        stream = portal.wait_text(job, b"\n100\n")

        cuts = 0
        for turn in range(5):
            wait_for_rotation(portal, job)
            for _ in range(10):
                wait_for_a_young_file(portal, job)
                stored = portal.member.get(f"streams/{stream}/")["lines"]
                portal.cluster.wait_for("an open line", line.cut)
                cuts += 1
                portal.wait(
                    "the follower to read on",
                    job,
                    lambda found, stored=stored: found["streams"][0]["lines"] > stored,  # type: ignore[misc]
                    seconds=20,
                )
            if turn % 2 == 0:
                wait_for_rotation(portal, job)
                portal.kill("watch")
                portal.start("watch", **changes)

        portal.release(job)
        portal.wait_state(job, "succeeded")
        (kept,) = portal.wait_log(job)
    text = portal.member.download(stream)
    assert cuts == 50
    # Where a file was rotated away while no watcher lived, which a slow machine brings about, nobody could have had it.
    declared = {gap["before"] for gap in kept["gaps"]}
    numbers = [0, *map(int, text.split())]
    for at, (before, number) in enumerate(itertools.pairwise(numbers), 1):
        assert number == before + 1 or (number > before and at in declared), f"line {at} is {number}, behind {before}"
    if not declared:
        assert hashlib.sha256(text).hexdigest() == hashlib.sha256(counted(kept["lines"])).hexdigest()
    # Seven files and more, of 256 KiB with the runtime's own 40 bytes a line.
    assert kept["lines"] > 7 * 256 * 1024 // 48


def test_a_follower_stopped_over_many_rotations_declares_every_missing_line_and_doubles_none(rotating: Portal) -> None:
    portal, lines = rotating, 900_000
    # What is sent fills the sockets' buffers first, so the stop is longer than a lease usually is.
    portal.stop("watch")
    portal.start("watch", BEAMTIME_LEASE="40")
    jobs = [portal.submit(COUNT_TO.format(lines=lines, step=2000, pause=0.1, words=WORDS), cores=1) for _ in range(2)]
    for job in jobs:
        portal.wait("its first lines", job, lambda found: found["streams"] and found["streams"][0]["lines"] > 2000)

    portal.pause("watch")
    for _ in range(8):
        wait_for_rotation(portal, jobs[0])
    portal.resume("watch")

    for job in jobs:
        portal.wait_state(job, "succeeded", seconds=180)
        (stream,) = portal.wait_log(job, seconds=120)
        assert_missing_only_in_gaps(stream, portal.member.download(stream["id"]), lines)
    portal.stop("watch")


def assert_missing_only_in_gaps(stream: dict[str, Any], text: bytes, lines: int) -> None:
    """Nothing doubled, nothing out of order, and nothing missing where no gap is declared.

    The runtime may tear the line that it is about to write when it changes files. Of a file that was left out, such a
    half remains beside the gap, as a line of its own or behind the half of another.
    """
    declared = {gap["before"] for gap in stream["gaps"]}
    last = last_at = 0
    for at, line in enumerate([*text.splitlines(), b"%d %s" % (lines + 1, WORDS.encode())], 1):
        if not re.fullmatch(rb"[1-9]\d* " + WORDS.encode(), line):
            assert declared & {at, at + 1}, f"line {at} is torn: {line!r}"
            continue
        number = int(line.split()[0])
        assert number > last, f"line {at} is {number}, behind {last}"
        if number != last + 1:
            beside = set(range(last_at + 1, at + 1))
            assert declared & beside, f"{number - last - 1} lines are missing before line {at}: {stream['gaps']}"
        last, last_at = number, at
