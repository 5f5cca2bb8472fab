"""What the tests of this folder speak of: one job, its objects as a cluster shows them."""

from typing import Any
from uuid import UUID

from portal.clusters.kube import manifests
from portal.clusters.specs import JobSpec, TeamSpace, WorkSpec

JOB_ID = "3f0c8a52-5b0e-4c1f-9a53-0e1f6f0f7d11"
NAMESPACE = "bt-vision"
INSTANCE = "beamtime"
NAME = f"bt-{UUID(JOB_ID).hex}-1"
SPACE = TeamSpace(cluster="main", namespace=NAMESPACE, team="vision", queues=(("gpu", "gpu"), ("cpu", "cpu-shared")))

Object = dict[str, Any]


def make_spec(**changes: Any) -> JobSpec:
    """A GPU job; fields of its WorkSpec and of the JobSpec itself may be given."""
    work = {name: changes.pop(name) for name in list(changes) if name in WorkSpec.__dataclass_fields__}
    defaults: dict[str, Any] = {
        "image": "registry.test/busybox:1",
        "command": ("/bin/sh", "-c", "echo hello"),
        "gpus": 1,
    }
    fields: dict[str, Any] = {
        "cluster": "main",
        "namespace": NAMESPACE,
        "name": NAME,
        "queue": "gpu",
        "cluster_queue": "gpu",
        "job_id": JOB_ID,
        "attempt": 1,
        "team": "vision",
        "submitted_by": "member",
        "display_name": "Train it",
    }
    return JobSpec(**(fields | changes), work=WorkSpec(**(defaults | work)))


def job_object(spec: JobSpec | None = None, *, uid: str = "job-uid", version: int = 10, **status: Any) -> Object:
    """The Job as the API server shows it, with a `status`."""
    made = manifests.job(spec or make_spec(), instance=INSTANCE)
    made["metadata"] |= {"uid": uid, "resourceVersion": str(version), "creationTimestamp": "2026-11-30T10:00:00Z"}
    return made | {"status": status}


def pod_object(
    spec: JobSpec | None = None, *, uid: str = "pod-uid", version: int = 20, phase: str = "Pending", **more: Any
) -> Object:
    """A pod of that Job. `more`: fields of metadata."""
    spec = spec or make_spec()
    template = manifests.job(spec, instance=INSTANCE)["spec"]["template"]
    metadata = {
        "name": f"{spec.name}-{uid}",
        "namespace": spec.namespace,
        "uid": uid,
        "resourceVersion": str(version),
        "creationTimestamp": "2026-11-30T10:00:01Z",
        "labels": template["metadata"]["labels"] | {"batch.kubernetes.io/job-name": spec.name},
        "ownerReferences": [{"kind": "Job", "name": spec.name, "uid": "job-uid"}],
    }
    return {"metadata": metadata | more, "spec": template["spec"], "status": {"phase": phase}}


def workload_object(spec: JobSpec | None = None, *, version: int = 15, **status: Any) -> Object:
    """Kueue's Workload of that Job."""
    spec = spec or make_spec()
    metadata = {
        "name": f"job-{spec.name}-1a2b3",
        "namespace": spec.namespace,
        "uid": f"workload-of-{spec.name}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-11-30T10:00:00Z",
        "labels": {"kueue.x-k8s.io/job-uid": "job-uid"},
        "ownerReferences": [{"kind": "Job", "name": spec.name, "uid": "job-uid"}],
    }
    return {"metadata": metadata, "spec": {"queueName": spec.queue}, "status": status}
