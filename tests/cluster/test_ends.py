"""How jobs end when nobody wished it: out of memory, out of time, taken away, or unseen."""

from __future__ import annotations

from typing import Any

from .portal import HOLD, Portal, terminated
from .testbed import images

HUNGRY = """echo about to eat
exec python3 -c 'held = bytearray(300_000_000)'
"""


def test_case_65_the_cause_outlives_the_pod_that_was_killed_for_memory(portal: Portal) -> None:
    job = portal.submit(HUNGRY, image=images.PYTHON)

    found = portal.wait_state(job, "failed")

    (pod,) = portal.kube_pods(job)
    assert (terminated(pod)["reason"], terminated(pod)["exitCode"]) == ("OOMKilled", 137)
    expected = "Killed: the container passed its memory limit of 64 MiB. Ask for more memory, or hold less at once."
    assert (found["reason_code"], found["reason"]) == ("out_of_memory", expected)
    (stream,) = portal.wait_log(job)

    portal.cluster.kubectl("delete", "job", portal.place(job).name, "-n", portal.place(job).namespace)
    portal.wait("the pod to be gone", job, lambda found: found["attempts"][0]["pods"][0]["gone"])

    later = portal.job(job)
    assert (later["state"], later["reason_code"], later["reason"]) == ("failed", "out_of_memory", expected)
    (attempt,) = later["attempts"]
    assert (attempt["cluster_reason"], attempt["exit_code"]) == ("OOMKilled", 137)
    assert portal.member.download(stream["id"]) == b"about to eat\n"


def test_case_65_a_pod_that_vanished_unread_is_said_to_have_vanished_without_a_guess(portal: Portal) -> None:
    job = portal.submit(f"{HOLD}{HUNGRY}", image=images.PYTHON)
    portal.wait_text(job, b"begun")
    portal.kill("watch")
    portal.release(job)
    place = portal.place(job)
    portal.cluster.kubectl("wait", "--for=condition=Failed", "job", place.name, "-n", place.namespace, "--timeout=60s")
    portal.cluster.kubectl("delete", "pods", "-n", place.namespace, "-l", f"batch.kubernetes.io/job-name={place.name}")

    portal.start("watch")

    found = portal.wait_state(job, "failed")
    assert (found["reason_code"], found["attempts"][0]["exit_code"]) == ("vanished", None)
    assert found["reason"] == "Its pod vanished before its end was read, so how it ended is not known. Run it again."
    (stream,) = portal.wait_log(job)
    assert stream["trouble"] == "The last lines may be missing: the pod was deleted before its log was read to the end."
    portal.wait("closed intervals", job, lambda _: all(row["ended_at"] for row in portal.usage(job)))
    assert all(row["estimated"] for row in portal.usage(job))


def test_a_job_over_its_time_is_stopped_and_keeps_its_log(portal: Portal) -> None:
    job = portal.submit(time_limit="5 s")

    found = portal.wait_state(job, "failed")

    (pod,) = portal.kube_pods(job)
    assert pod["status"]["reason"] == found["attempts"][0]["cluster_reason"] == "DeadlineExceeded"
    assert found["reason_code"] == "time_limit"
    assert found["reason"] == "Stopped at its time limit of 5 s. Give it more time, or go on from its last checkpoint."
    (stream,) = portal.wait_log(job)
    assert portal.member.download(stream["id"]) == portal.kube_log(pod) == b"begun\ntold to end\n"


def test_a_job_deleted_behind_the_portals_back_is_lost_and_never_made_again(portal: Portal) -> None:
    job = portal.submit(gpus=1)
    portal.wait_text(job, b"begun")

    portal.cluster.kubectl("delete", "job", portal.place(job).name, "-n", portal.place(job).namespace)

    found = portal.wait_state(job, "lost")
    assert found["reason_code"] == "deleted_outside"
    assert found["reason"].startswith("Its Job was deleted in the cluster, not through Beamtime")
    (stream,) = portal.wait_log(job)
    assert portal.member.download(stream["id"]) == b"begun\ntold to end\n"
    portal.wait("closed intervals", job, lambda _: all(row["ended_at"] for row in portal.usage(job)))
    portal.nudge("jobs.sweep")
    another = portal.submit("true")
    portal.wait_state(another, "succeeded")
    assert portal.kube_jobs_of(job) == []


def test_a_pod_deleted_while_it_runs_fails_its_job_and_says_that_it_was_stopped_from_outside(portal: Portal) -> None:
    job = portal.submit()
    portal.wait_text(job, b"begun")
    (pod,) = portal.kube_pods(job)

    portal.cluster.kubectl("delete", "pod", pod["metadata"]["name"], "-n", pod["metadata"]["namespace"])

    found = portal.wait_state(job, "failed")
    assert (found["reason_code"], found["attempts"][0]["exit_code"]) == ("stopped", 143)
    assert found["reason"] == "Stopped from outside: its pod was deleted while it ran."


def test_a_finished_job_leaves_the_cluster_once_its_story_is_stored_and_the_story_stays(portal: Portal) -> None:
    job = portal.submit("echo kept", gpus=1)
    portal.wait_state(job, "succeeded")
    (stream,) = portal.wait_log(job)
    portal.nudge("costs.rate")
    before = portal.wait("the final cost", job, lambda found: found["cost"]["final"] is not None)

    portal.stop("worker")
    portal.start("worker", BEAMTIME_KEEP_FINISHED="1")

    def gone(_: dict[str, Any]) -> bool:
        portal.nudge("jobs.collect_finished")
        return portal.kube_job(job) is None and portal.kube_pods(job) == []

    portal.wait("its objects to be gone", job, gone)

    after = portal.job(job)
    same = ("state", "reason", "started_at", "ended_at", "cost")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert portal.member.download(stream["id"]) == b"kept\n"
    assert after["attempts"][0]["pods"][0]["exit_code"] == 0
