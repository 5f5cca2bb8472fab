"""Logs whose files are rotated while they are read: every line once, or a gap that says where lines are missing."""

from __future__ import annotations

import hashlib

import pytest

from .gated import Gated, numbered, under_fire
from .judged import judge
from .line import Line
from .portal import Portal
from .testbed.cluster import Cluster

# The kubelet looks every three seconds and rotates what is larger.
FILE_BYTES = 256 * 1024
SMALL = {"containerLogMaxSize": "256Ki", "containerLogMaxFiles": 3, "containerLogMonitorInterval": "3s"}
TOLD = {"BEAMTIME_LOG_FILE_BYTES": str(FILE_BYTES)}

COUNT_TO = """i=0
while [ $i -lt {lines} ]; do
  seq $((i + 1)) $((i + {step})) | sed 's/$/ {words}/'
  i=$((i + {step}))
  sleep {pause}
done
"""

WORDS = "x" * 90


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


@pytest.fixture
def rotating(portal: Portal, own_cluster: Cluster) -> Portal:
    own_cluster.set_kubelet(**SMALL)
    return portal


def test_case_05_fifty_cuts_and_three_dead_watchers_over_many_rotations_cost_no_line(rotating: Portal) -> None:
    portal = rotating
    portal.kill("watch")
    with Line(portal.kubeconfig("watch"), portal.folder).open() as line:
        changes = {"BEAMTIME_CLUSTER_KUBECONFIG": str(line.kubeconfig), "BEAMTIME_LEASE": "3", **TOLD}
        portal.start("watch", **changes)

        def kill() -> None:
            portal.kill("watch")
            portal.start("watch", **changes)

        pod = Gated(portal, portal.member, file_bytes=FILE_BYTES)
        pod.begin()
        seen = under_fire(pod, line, kill, cuts=50, kills=3, each_file=5)
        kept = pod.finish()

    assert (seen.cuts, seen.kills, pod.rotations) == (50, 3, 10)
    # Most of them in the middle of something; where the machine is slow, the reader may be the faster one.
    assert seen.amid > 10
    expected = numbered(pod.allowed)
    assert hashlib.sha256(kept.text).hexdigest() == hashlib.sha256(expected).hexdigest()
    assert kept.stream["sha256"] == hashlib.sha256(expected).hexdigest()
    assert (kept.stream["lines"], kept.stream["gaps"]) == (pod.allowed, [])


def test_a_follower_stopped_over_many_rotations_declares_every_missing_line_and_doubles_none(rotating: Portal) -> None:
    portal, lines = rotating, 900_000
    # What is sent fills the sockets' buffers first, so the stop is longer than a lease usually is.
    portal.stop("watch")
    portal.start("watch", BEAMTIME_LEASE="40", **TOLD)
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
        found = judge(portal.member.download(stream["id"]), stream["gaps"], lines=lines, words=WORDS)
        assert (found.silent, found.doubled) == (0, 0), (found.faults, stream["gaps"])
        # Where the kubelet is overworked, a pause may look like a file that was left out.
        assert found.needless <= 2, stream["gaps"]
    portal.stop("watch")


def test_what_was_rotated_away_before_anybody_read_is_declared_before_line_1(rotating: Portal) -> None:
    portal, lines = rotating, 300_000
    portal.stop("watch")
    job = portal.submit(COUNT_TO.format(lines=lines, step=2000, pause=0.2, words=WORDS), cores=1)
    portal.cluster.wait_for(
        "its pod to run", lambda: [pod["status"]["phase"] for pod in portal.kube_pods(job)] == ["Running"]
    )
    wait_for_rotation(portal, job)
    portal.start("watch", **TOLD)

    portal.wait_state(job, "succeeded", seconds=180)
    (stream,) = portal.wait_log(job, seconds=120)
    found = judge(portal.member.download(stream["id"]), stream["gaps"], lines=lines, words=WORDS)
    assert found.missing > 0
    assert (found.silent, found.doubled) == (0, 0), (found.faults, stream["gaps"])
    assert stream["gaps"][0]["before"] == 1
    portal.stop("watch")
