"""Something of ours or of the cluster dies while jobs are on their way: nothing is lost and nothing comes twice."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from .portal import Portal, condition, moment, terminated
from .testbed.cluster import Cluster
from .wire import Wire

COUNT = """trap 'exit 143' TERM
for i in $(seq 1 350); do echo "line $i"; sleep 0.1; done
"""
COUNTED = "".join(f"line {number}\n" for number in range(1, 351)).encode()


def test_an_api_server_that_hangs_for_thirty_seconds_costs_no_line_no_second_and_no_job(
    portal: Portal, own_cluster: Cluster
) -> None:
    running = portal.submit(COUNT, gpus=1)
    portal.wait_text(running, b"line 5\n")

    with own_cluster.paused("apiserver"):
        began = time.monotonic()
        meanwhile = portal.submit("echo submitted meanwhile")
        unsure = portal.wait("a word of doubt", meanwhile, lambda found: found["reason_code"] == "checking", seconds=25)
        assert unsure["state"] == "submitted"
        assert unsure["reason"] == "Sent to the cluster, but no answer came back: unknown whether it arrived. Checking."
        own_cluster.wait_for("half a minute to pass", lambda: time.monotonic() > began + 30)
        assert portal.job(running)["state"] == "running"

    portal.wait_state(meanwhile, "succeeded")
    assert len(portal.kube_jobs_of(meanwhile)) == 1
    found = portal.wait_state(running, "succeeded")
    (stream,) = portal.wait_log(running)
    (pod,) = portal.kube_pods(running)
    assert portal.member.download(stream["id"]) == portal.kube_log(pod) == COUNTED
    assert stream["trouble"] == ""
    assert len(found["attempts"]) == 1
    gpu = next(row for row in portal.usage(running) if row["resource"] == "nvidia.com/gpu")
    assert (moment(gpu["ended_at"]), gpu["estimated"]) == (moment(terminated(pod)["finishedAt"]), False)


def test_a_dead_node_is_told_as_what_it_is_and_its_usage_ends_as_an_estimate(
    portal: Portal, own_cluster: Cluster
) -> None:
    job = portal.submit(gpus=1)
    portal.wait_text(job, b"begun")

    own_cluster.kill("kubelet")

    found = portal.wait("word of the node", job, lambda found: found["reason_code"] == "node_lost", seconds=90)
    assert found["state"] == "running"
    assert found["reason"] == "No word from node gpu-a. Checking; the job may still be running there."
    assert condition(portal.kube_pods(job)[0], "Ready")["status"] == "False"
    assert all(row["ended_at"] is None for row in portal.usage(job))

    # What an administrator does once the machine is known to be off.
    own_cluster.kubectl("taint", "node", "gpu-a", "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
    try:
        ended = portal.wait_state(job, "failed", "lost", seconds=60)
        portal.wait("closed intervals", job, lambda _: all(row["ended_at"] for row in portal.usage(job)))
    finally:
        own_cluster.kubectl("taint", "node", "gpu-a", "node.kubernetes.io/out-of-service-")
        own_cluster.start("kubelet")

    assert ended["reason_code"] == "node_lost"
    assert ended["attempts"][0]["cluster_reason"] == "DeletionByTaintManager"
    assert ended["reason"] == "Node gpu-a left the cluster while the job was on it. Run it again."
    assert all(row["estimated"] for row in portal.usage(job))
    (stream,) = portal.wait_log(job)
    assert portal.member.download(stream["id"]).startswith(b"begun\n")
    assert stream["trouble"]


def test_a_job_cancelled_while_nobody_watches_ends_all_the_same(portal: Portal) -> None:
    job = portal.submit(gpus=1)
    portal.wait_text(job, b"begun")
    portal.kill("watch")

    portal.cancel(job)
    portal.wait_state(job, "cancelled")
    portal.start("watch")

    portal.wait("closed intervals", job, lambda _: all(row["ended_at"] for row in portal.usage(job)))
    (stream,) = portal.wait_log(job)
    assert portal.member.download(stream["id"]).startswith(b"begun\n")
    portal.nudge("costs.rate")
    portal.wait("the final cost", job, lambda found: found["cost"]["final"] is not None)


def test_each_job_is_made_once_though_worker_and_broker_are_killed_during_the_submissions(
    portal: Portal, own_cluster: Cluster
) -> None:
    blocker = portal.submit(gpus=4)
    portal.wait_text(blocker, b"begun")

    with ThreadPoolExecutor(4) as people:
        # The worker dies in the middle of its calls: the API server has them, and has not answered.
        with own_cluster.paused("apiserver"):
            jobs = list(people.map(lambda _: portal.submit(gpus=1), range(6)))
            portal.kill("worker")
        portal.redis.stop()
        jobs += list(people.map(lambda _: portal.submit(gpus=1), range(6)))
        portal.redis.start()
        portal.start("worker")
        jobs += list(people.map(lambda _: portal.submit(gpus=1), range(6)))

    for job in jobs:
        # A claim of the killed worker is good for a minute.
        portal.wait_state(job, "queued", seconds=90)
        (kube,) = portal.kube_jobs_of(job)
        (attempt,) = portal.job(job)["attempts"]
        assert kube["metadata"]["uid"] == attempt["object_uid"]
    assert len(set(jobs)) == 18


def test_a_job_submitted_while_the_broker_is_down_runs_and_is_made_once(portal: Portal) -> None:
    portal.redis.stop()
    job = portal.submit("echo without a broker")
    portal.wait_state(job, "succeeded", seconds=30)
    (stream,) = portal.wait_log(job)
    portal.redis.start()

    afterwards = portal.submit("echo with one")
    portal.wait_state(afterwards, "succeeded")
    assert portal.member.download(stream["id"]) == b"without a broker\n"
    assert [len(portal.kube_jobs_of(each)) for each in (job, afterwards)] == [1, 1]


def test_case_23_a_creation_whose_answer_came_too_late_is_adopted(portal: Portal) -> None:
    portal.wait_state(portal.submit("true"), "succeeded")
    portal.stop("watch")
    portal.stop("worker")
    with Wire(portal.kubeconfig("worker"), portal.folder).open() as wire:
        portal.start("worker", BEAMTIME_CLUSTER_KUBECONFIG=str(wire.kubeconfig))
        # One answer comes after the portal's patience, another is cut off, a third is that to the secret.
        wire.swallow("POST", "/jobs$", silence=30)
        late = portal.submit("echo once")
        portal.cluster.wait_for("the late creation", lambda: portal.kube_job(late))
        wire.swallow("POST", "/jobs$")
        wire.swallow("POST", "/secrets$")
        cut = portal.submit('echo "once with ${#SECRET}"', secret="12345")
        portal.cluster.wait_for("the other creation", lambda: portal.kube_job(cut))
        first = {job: portal.kube_jobs_of(job)[0]["metadata"]["uid"] for job in (late, cut)}

        unsure = portal.wait("a word of doubt", late, lambda found: found["reason_code"] == "checking", seconds=20)
        assert unsure["state"] == "submitted"
        for job in (late, cut):
            portal.wait_state(job, "queued")
        portal.start("watch")
        for job in (late, cut):
            portal.wait_state(job, "succeeded")
            (kube,) = portal.kube_jobs_of(job)
            assert kube["metadata"]["uid"] == first[job]
            (stream,) = portal.wait_log(job)
            assert stream["lines"] == 1
        assert portal.member.download(stream["id"]) == b"once with 5\n"
        assert [status for _, status in wire.lost] == [201, 201, 201]
