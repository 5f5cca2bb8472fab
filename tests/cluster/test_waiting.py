"""Waiting, and leaving: inside the quota, on the way to a node, and by somebody's wish."""

from __future__ import annotations

from typing import Any

from .portal import Portal, condition, moment, terminated
from .testbed import images, queues
from .testbed.cluster import Cluster

BY_ITSELF = "It starts by itself once others end."


def test_the_second_job_waits_inside_the_quota_and_starts_when_the_first_ends(portal: Portal) -> None:
    first = portal.submit(gpus=4)
    portal.wait_text(first, b"begun")
    second = portal.submit("echo my turn", gpus=1)

    waiting = portal.wait("Kueue's reason", second, lambda found: found["reason_code"] == "quota")

    assert waiting["state"] == "queued"
    assert (
        waiting["reason"] == "No room now: 1 more GPU is needed in flavor gpu-a. It starts by itself once others end."
    )
    reserved = condition(portal.kube_workload(second), "QuotaReserved")
    assert waiting["attempts"][0]["cluster_message"] == reserved["message"]
    assert waiting["attempts"][0]["cluster_reason"] == reserved["reason"]
    kube = portal.kube_job(second)
    assert kube is not None
    assert kube["spec"]["suspend"] is True
    assert portal.kube_pods(second) == []
    assert portal.usage(second) == []

    portal.release(first)
    portal.wait_state(first, "succeeded")
    ended = portal.wait_state(second, "succeeded")

    assert moment(terminated(portal.kube_pods(second)[0])["startedAt"]) >= moment(
        terminated(portal.kube_pods(first)[0])["finishedAt"]
    )
    assert ended["reason"] == ""
    events = [event["kind"] for event in portal.member.get(f"jobs/{second}/events/")]
    assert events == ["submitted", "queued", "waiting", "starting", "running", "succeeded"]


def test_a_cancelled_job_leaves_nothing_in_the_cluster_whether_it_waited_or_ran(portal: Portal) -> None:
    running = portal.submit(gpus=4)
    portal.wait_text(running, b"begun")
    waiting = portal.submit(gpus=1)
    portal.wait("Kueue's reason", waiting, lambda found: found["reason_code"] == "quota")

    assert portal.cancel(waiting)["state"] == "cancelling"
    ended = portal.wait_state(waiting, "cancelled")

    assert portal.kube_job(waiting) is None
    assert ended["reason"] == "Cancelled by member."
    assert (ended["streams"], portal.usage(waiting)) == ([], [])

    assert portal.cancel(running)["state"] == "cancelling"
    assert portal.cancel(running)["state"] == "cancelling"
    ended = portal.wait_state(running, "cancelled")

    assert portal.kube_job(running) is None
    # A pod that has ended holds nothing any more; its object goes a moment later.
    assert all(pod["status"]["phase"] in {"Failed", "Succeeded"} for pod in portal.kube_pods(running))
    portal.cluster.wait_for("its pod to be gone", lambda: not portal.kube_pods(running))
    assert ended["reason"] == "Cancelled by member."
    (stream,) = portal.wait_log(running)
    assert portal.member.download(stream["id"]) == b"begun\ntold to end\n"
    assert all(row["seconds"] is not None for row in portal.usage(running))


def test_a_job_whose_image_cannot_be_pulled_stays_starting_says_why_and_can_be_cancelled(portal: Portal) -> None:
    job = portal.submit("echo never", image="registry.test/pytorch:missing")

    found = portal.wait("the reason", job, lambda found: found["reason_code"] == "image")

    assert found["state"] == "starting"
    assert found["reason"] == "The image cannot be pulled. Check its name and tag; the cluster keeps trying."
    (pod,) = portal.kube_pods(job)
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] in {"ErrImagePull", "ImagePullBackOff"}
    assert found["attempts"][0]["cluster_reason"] in {"ErrImagePull", "ImagePullBackOff"}
    assert "registry.test/pytorch:missing" in found["attempts"][0]["cluster_message"]

    portal.cancel(job)
    portal.wait_state(job, "cancelled")
    assert portal.kube_job(job) is None


def test_a_job_that_an_administrator_holds_says_so_and_goes_on_when_let_go(portal: Portal) -> None:
    job = portal.submit(gpus=1)
    portal.wait_text(job, b"begun")
    workload = portal.kube_workload(job)["metadata"]
    hold = ["patch", "workload", workload["name"], "-n", workload["namespace"], "--type=merge", "-p"]

    portal.cluster.kubectl(*hold, '{"spec": {"active": false}}')
    held = portal.wait("the hold", job, lambda found: found["reason_code"] == "held")

    assert held["state"] == "queued"
    assert held["reason"] == "Held: an administrator has deactivated its Workload. It goes on once that is undone."
    assert condition(portal.kube_workload(job), "Evicted")["reason"] == held["attempts"][0]["cluster_reason"]

    portal.cluster.kubectl(*hold, '{"spec": {"active": true}}')
    portal.wait("a second run", job, lambda found: found["state"] == "running" and len(found["streams"]) == 2)
    portal.release(job)
    ended = portal.wait_state(job, "succeeded")
    portal.wait_log(job, streams=2)

    assert len(ended["attempts"]) == 1
    logs = sorted(portal.member.download(stream["id"]) for stream in ended["streams"])
    assert logs == [b"begun\nended\n", b"begun\ntold to end\n"]
    gpus = [row for row in portal.usage(job) if row["resource"] == "nvidia.com/gpu"]
    assert len({row["pod_uid"] for row in gpus}) == len(gpus) == 2
    assert moment(gpus[0]["ended_at"]) <= moment(gpus[1]["started_at"])


TALKATIVE = """trap 'echo told to end; seq 1000000 1000999; exit 143' TERM
seq 1 5000
echo begun
until [ -e /tmp/go ]; do sleep 0.1; done
echo ended
"""


def test_a_preempted_job_keeps_every_line_of_its_first_run_and_runs_again(portal: Portal, own_cluster: Cluster) -> None:
    own_cluster.apply(
        {"apiVersion": queues.API, "kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
    )
    _let_preempt(own_cluster, "LowerPriority")
    job = portal.submit(TALKATIVE, gpus=1)
    portal.wait_text(job, b"begun")
    place = portal.place(job)

    own_cluster.apply(_urgent(place.namespace, gpus=4))
    try:
        back = portal.wait("the preemption", job, lambda found: found["reason_code"] == "preempted")
        assert back["state"] == "queued"
        (stream,) = portal.wait_log(job)
        assert portal.member.download(stream["id"]) == _counted(1, 5001) + b"begun\ntold to end\n" + _counted(
            1000000, 1001000
        )
        assert (stream["trouble"], stream["gaps"]) == ("", [])
    finally:
        own_cluster.kubectl("delete", "job", "urgent", "-n", place.namespace)
        own_cluster.kubectl("delete", "workloadpriorityclass", "urgent")
        _let_preempt(own_cluster, "Never")

    portal.wait("a second run", job, lambda found: found["state"] == "running" and len(found["streams"]) == 2)
    portal.release(job)
    ended = portal.wait_state(job, "succeeded")
    portal.wait_log(job, streams=2)
    assert len(ended["attempts"]) == 1
    logs = [portal.member.download(each["id"]) for each in ended["streams"] if each["id"] != stream["id"]]
    assert logs == [_counted(1, 5001) + b"begun\nended\n"]


def _let_preempt(cluster: Cluster, whom: str) -> None:
    change = f'{{"spec": {{"preemption": {{"withinClusterQueue": "{whom}"}}}}}}'
    cluster.kubectl("patch", "clusterqueue", "gpu", "--type=merge", "-p", change)


def _counted(first: int, end: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(first, end))


def _urgent(namespace: str, *, gpus: int) -> dict[str, Any]:
    """A Job of somebody who does not use the portal, in the same queue and with a higher priority."""
    wants = {"nvidia.com/gpu": str(gpus), "cpu": "100m", "memory": "64Mi"}
    container = {
        "name": "main",
        "image": images.BUSYBOX,
        "command": ["sleep", "3600"],
        "resources": {"requests": wants, "limits": wants},
    }
    labels = {"kueue.x-k8s.io/queue-name": "gpu", "kueue.x-k8s.io/priority-class": "urgent"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "urgent", "namespace": namespace, "labels": labels},
        "spec": {
            "suspend": True,
            "template": {
                "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
            },
        },
    }


def test_case_31_a_job_that_no_node_ever_takes_costs_nothing_however_it_ends(
    portal: Portal, own_cluster: Cluster
) -> None:
    own_cluster.kubectl("cordon", "gpu-a")
    try:
        job = portal.submit(gpus=1)
        found = portal.wait("the reason", job, lambda found: found["reason_code"] == "unschedulable")

        assert found["state"] == "starting"
        assert "1 node(s) were unschedulable" in found["attempts"][0]["cluster_message"]
        (pod,) = portal.kube_pods(job)
        assert condition(pod, "PodScheduled")["status"] == "False"
        portal.cancel(job)
        portal.wait_state(job, "cancelled")
    finally:
        own_cluster.kubectl("uncordon", "gpu-a")

    portal.nudge("costs.rate")
    cost = portal.wait("the final cost", job, lambda found: found["cost"]["final"] is not None)["cost"]
    assert (cost["final"], cost["missing"]) == ("0.00", [])
    assert portal.usage(job) == []
    assert portal.member.get(f"charges/?job={job}")["results"] == []


def test_case_25_a_job_larger_than_its_queue_is_refused_at_once_with_both_numbers(portal: Portal) -> None:
    before = portal.member.get("jobs/?limit=1")["results"]

    answer = portal.member.call("POST", "jobs/", portal.body("true", cores=9))

    assert answer.status == 422
    assert answer.json["errors"] == [
        {
            "field": "values.cores",
            "message": "Can never fit: it asks 9 cores, the most this queue can give is 8. Take 8 or fewer.",
            "code": "never_fits",
        }
    ]
    assert portal.member.get("jobs/?limit=1")["results"] == before
