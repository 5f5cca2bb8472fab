"""The testbed itself: what every other test in this folder takes for granted."""

from __future__ import annotations

from typing import Any

import pytest

from .testbed import images, queues
from .testbed.cluster import Cluster, KubectlError


def a_job(
    name: str, namespace: str, command: list[str], *, image: str = images.BUSYBOX, **asked: str
) -> dict[str, Any]:
    """A suspended Job of one pod for a LocalQueue; `asked`: queue=, gpus=, memory=."""
    amounts = {"memory": asked.get("memory", "64Mi")}
    if "gpus" in asked:
        amounts["nvidia.com/gpu"] = asked["gpus"]
    container = {
        "name": "main",
        "image": image,
        "command": command,
        "resources": {"requests": {"cpu": "50m", **amounts}, "limits": amounts},
    }
    labels = {"kueue.x-k8s.io/queue-name": asked.get("queue", "gpu")}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"suspend": True, "backoffLimit": 0, "template": {"spec": pod}},
    }


def the_pod(cluster: Cluster, namespace: str, job: str) -> dict[str, Any] | None:
    found = cluster.kubectl_json("get", "pods", "-n", namespace, "-l", f"batch.kubernetes.io/job-name={job}")["items"]
    return found[0] if found else None


def the_end_of(cluster: Cluster, namespace: str, job: str) -> dict[str, Any]:
    """The `terminated` state of the job's container, once it has one."""

    def ended() -> dict[str, Any] | None:
        pod = the_pod(cluster, namespace, job)
        states = pod["status"].get("containerStatuses", []) if pod else []
        return states[0]["state"].get("terminated") if states else None

    return cluster.wait_for(f"the container of {job} to end", ended)


def condition(cluster: Cluster, namespace: str, job: str, kind: str) -> dict[str, Any] | None:
    """A condition of the Workload that Kueue made for a Job."""
    for workload in cluster.kubectl_json("get", "workloads", "-n", namespace)["items"]:
        if any(owner["name"] == job for owner in workload["metadata"].get("ownerReferences", [])):
            return next((each for each in workload["status"].get("conditions", []) if each["type"] == kind), None)
    return None


def test_a_job_is_admitted_and_really_runs(cluster: Cluster, namespace: str) -> None:
    cluster.apply(a_job("hello", namespace, ["sh", "-c", "echo measured in $(pwd); exit 3"], gpus="1"))

    end = the_end_of(cluster, namespace, "hello")

    assert end["exitCode"] == 3
    assert end["reason"] == "Error"
    assert cluster.kubectl("logs", "-n", namespace, "job/hello") == "measured in /\n"
    admitted = condition(cluster, namespace, "hello", "Admitted")
    assert admitted is not None
    assert admitted["status"] == "True"
    pod = the_pod(cluster, namespace, "hello")
    assert pod is not None
    assert pod["spec"]["nodeSelector"] == {"beamtime.test/node-kind": "gpu"}


def test_python_runs_in_its_image(cluster: Cluster, namespace: str) -> None:
    script = "import ssl, sqlite3, asyncio, decimal, os; print(os.getuid(), 'ü', decimal.Decimal(1) / 8)"
    cluster.apply(a_job("python", namespace, ["python3", "-c", script], image=images.PYTHON, queue="cpu"))

    assert the_end_of(cluster, namespace, "python")["exitCode"] == 0
    assert cluster.kubectl("logs", "-n", namespace, "job/python") == "0 ü 0.125\n"


def test_a_job_over_its_memory_is_killed_and_says_so(cluster: Cluster, namespace: str) -> None:
    command = ["python3", "-c", "held = bytearray(300_000_000)"]
    cluster.apply(a_job("hungry", namespace, command, image=images.PYTHON, queue="cpu", memory="64Mi"))

    end = the_end_of(cluster, namespace, "hungry")

    assert (end["exitCode"], end["reason"]) == (137, "OOMKilled")


def test_a_missing_image_fails_to_pull(cluster: Cluster, namespace: str) -> None:
    cluster.apply(a_job("missing", namespace, ["true"], image=f"{images.REGISTRY}/nothing:1", queue="cpu"))

    def waiting() -> bool:
        pod = the_pod(cluster, namespace, "missing")
        states = pod["status"].get("containerStatuses", []) if pod else []
        return any(
            each["state"].get("waiting", {}).get("reason") in ("ErrImagePull", "ImagePullBackOff") for each in states
        )

    cluster.wait_for("the pull to fail", waiting)


def test_more_gpus_than_the_quota_wait_with_kueues_own_words(cluster: Cluster, namespace: str) -> None:
    cluster.apply(a_job("greedy", namespace, ["true"], gpus="5"))

    pending = cluster.wait_for("Kueue to say why", lambda: condition(cluster, namespace, "greedy", "QuotaReserved"))

    assert pending["status"] == "False"
    assert "insufficient quota for nvidia.com/gpu in flavor gpu-a" in pending["message"]
    assert the_pod(cluster, namespace, "greedy") is None
    path = f"/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues/gpu/pendingworkloads"
    listed = cluster.wait_for(
        "the visibility API to list it", lambda: cluster.kubectl_json("get", "--raw", path)["items"]
    )
    assert listed[0]["positionInLocalQueue"] == 0


def test_kueues_webhooks_refuse_what_they_refuse_in_production(cluster: Cluster) -> None:
    lending_without_a_cohort = {"name": "cpu", "nominalQuota": "1", "lendingLimit": "1"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "cpu", "resources": [lending_without_a_cohort]}]}
    wrong = {
        "apiVersion": queues.API,
        "kind": "ClusterQueue",
        "metadata": {"name": "wrong"},
        "spec": {"resourceGroups": [group]},
    }

    with pytest.raises(KubectlError, match=r"vclusterqueue\.kb\.io"):
        cluster.apply(wrong)


@pytest.mark.parametrize(
    "name", ["apiserver", "controller-manager", "scheduler", "kueue", "kubelet", "etcd", "containerd"]
)
def test_a_component_can_be_killed_and_started_again(own_cluster: Cluster, namespace: str, name: str) -> None:
    own_cluster.kill(name)
    assert own_cluster.state(name) == "dead"

    own_cluster.start(name)

    assert own_cluster.state(name) == "running"
    own_cluster.apply(a_job("after", namespace, ["echo", "still here"], gpus="4"))
    assert the_end_of(own_cluster, namespace, "after")["exitCode"] == 0


def test_a_paused_api_server_hangs_and_comes_back(own_cluster: Cluster) -> None:
    with own_cluster.paused("apiserver"):
        assert own_cluster.state("apiserver") == "paused"
        with pytest.raises(KubectlError, match="no answer within 2 s"):
            own_cluster.kubectl("get", "nodes", seconds=2)

    assert "gpu-a" in own_cluster.kubectl("get", "nodes")


def test_a_container_outlives_its_kubelet(own_cluster: Cluster, namespace: str) -> None:
    own_cluster.apply(a_job("steady", namespace, ["sh", "-c", "echo begun; sleep 8; echo ended"], gpus="1"))
    own_cluster.wait_for("the job to begin", lambda: "begun" in log_so_far(own_cluster, namespace, "steady"))

    own_cluster.kill("kubelet")
    own_cluster.start("kubelet")

    assert the_end_of(own_cluster, namespace, "steady")["exitCode"] == 0
    assert own_cluster.kubectl("logs", "-n", namespace, "job/steady") == "begun\nended\n"


def test_logs_rotate_at_the_size_that_a_test_asks_for(own_cluster: Cluster, namespace: str) -> None:
    own_cluster.set_kubelet(containerLogMaxSize="20Ki", containerLogMaxFiles=2)
    script = "for second in $(seq 20); do seq 2000; sleep 0.5; done"
    own_cluster.apply(a_job("wordy", namespace, ["sh", "-c", script], gpus="1"))

    assert the_end_of(own_cluster, namespace, "wordy")["exitCode"] == 0

    whole = 20 * len("".join(f"{number}\n" for number in range(1, 2001)))
    assert len(own_cluster.kubectl("logs", "-n", namespace, "job/wordy")) < whole


def test_pretended_nodes_run_many_jobs_but_none_that_did_not_ask_for_them(own_cluster: Cluster, namespace: str) -> None:
    own_cluster.add_kwok_nodes(2)
    queues.apply_kwok(own_cluster, gpus=16)
    queues.local_queue(own_cluster, namespace=namespace, name="kwok", cluster_queue="kwok")
    jobs = [a_job(f"fake-{number}", namespace, ["true"], queue="kwok", gpus="8") for number in range(4)]
    own_cluster.apply(*jobs, a_job("real", namespace, ["true"], queue="cpu"))

    own_cluster.kubectl(
        "wait", "-n", namespace, "--for=condition=Complete", "job", "--all", "--timeout=60s", seconds=70
    )

    pods = own_cluster.kubectl_json("get", "pods", "-n", namespace)["items"]
    places = {pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]: pod["spec"]["nodeName"] for pod in pods}
    assert places.pop("real") == "gpu-a"
    # Which of the two is the scheduler's choice: pods there end so fast that one node may do for all.
    assert set(places.values()) <= {"kwok-1", "kwok-2"}


def test_an_old_resource_version_is_gone_after_compaction(own_cluster: Cluster, namespace: str) -> None:
    own_cluster.compact_etcd()

    with pytest.raises(KubectlError, match=r"Expired|too old"):
        own_cluster.kubectl(
            "get", "--raw", f"/api/v1/namespaces/{namespace}/configmaps?resourceVersion=1&resourceVersionMatch=Exact"
        )


def log_so_far(cluster: Cluster, namespace: str, job: str) -> str:
    """What the job has written, or nothing while its container is being made."""
    try:
        return cluster.kubectl("logs", "-n", namespace, f"job/{job}")
    except KubectlError:
        return ""
