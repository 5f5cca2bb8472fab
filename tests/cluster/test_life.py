"""A job's ordinary life: from the form to a real pod, its log, its end and its cost, against kubectl."""

from __future__ import annotations

from decimal import Decimal

from .portal import Portal, condition, moment, terminated
from .site import CORE_HOUR, GPU_HOUR

WORDS = r"""
printf 'grüße \033[31mred\033[0m\n\n  indented\n'
printf '10%%\r20%%\r'
sleep 2
printf 'no line feed at the end'
"""


def test_a_submitted_job_runs_as_a_real_pod_and_everything_agrees_with_kubectl(portal: Portal) -> None:
    job = portal.submit(WORDS, gpus=1, name="первая задача")

    found = portal.wait_state(job, "succeeded")
    (stream,) = portal.wait_log(job)

    kube = portal.kube_job(job)
    (pod,) = portal.kube_pods(job)
    assert kube is not None
    assert kube["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpu"
    assert kube["metadata"]["annotations"]["beamtime/name"] == "первая задача"
    assert condition(portal.kube_workload(job), "Finished")["status"] == "True"

    assert portal.member.download(stream["id"]) == portal.kube_log(pod)
    (attempt,) = found["attempts"]
    assert attempt["exit_code"] == terminated(pod)["exitCode"] == 0
    assert attempt["nodes"] == [pod["spec"]["nodeName"]]
    assert attempt["object_uid"] == kube["metadata"]["uid"]
    assert moment(found["started_at"]) == moment(terminated(pod)["startedAt"])
    assert moment(found["ended_at"]) == moment(kube["status"]["completionTime"])

    begin, end = condition(pod, "PodScheduled")["lastTransitionTime"], terminated(pod)["finishedAt"]
    seconds = int((moment(end) - moment(begin)).total_seconds())
    assert seconds >= 2
    held = {row["resource"]: row for row in portal.usage(job)}
    assert {name: row["seconds"] for name, row in held.items()} == dict.fromkeys(held, seconds)
    assert {name: row["units"] for name, row in held.items()} == {"nvidia.com/gpu": 1, "cpu": 0.1, "memory": 0.062}
    assert moment(held["cpu"]["started_at"]) == moment(begin)

    portal.nudge("costs.rate")
    rated = portal.wait("the final cost", job, lambda found: found["cost"]["final"] is not None)
    price = seconds * (GPU_HOUR + CORE_HOUR * Decimal("0.1")) / 3600
    assert Decimal(rated["cost"]["final"]) == price.quantize(Decimal("0.01"))
    charged = portal.member.get(f"charges/?job={job}")["results"]
    assert {(line["resource"], line["seconds"]) for line in charged} == {("nvidia.com/gpu", seconds), ("cpu", seconds)}


def test_a_job_that_ends_with_an_exit_code_has_failed_and_says_so(portal: Portal) -> None:
    job = portal.submit("echo about to fail; exit 3")

    found = portal.wait_state(job, "failed")

    (attempt,) = found["attempts"]
    (pod,) = portal.kube_pods(job)
    assert attempt["exit_code"] == terminated(pod)["exitCode"] == 3
    assert found["reason_code"] == "exit_code"
    assert found["reason"].startswith("Ended with exit code 3.")
    assert attempt["cluster_reason"] == terminated(pod)["reason"] == "Error"
    (stream,) = portal.wait_log(job)
    assert portal.member.download(stream["id"]) == b"about to fail\n"
