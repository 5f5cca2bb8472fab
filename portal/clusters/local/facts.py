"""What a Kubernetes cluster with Kueue would tell about a job of this machine, in the same words."""

import hashlib
import platform
from collections.abc import Mapping
from decimal import Decimal

from portal.clusters.local.records import CONTAINER, JobRecord, Mark, PodRecord, moment
from portal.clusters.specs import (
    AttemptFacts,
    Condition,
    ContainerFacts,
    JobFacts,
    JobSpec,
    PodFacts,
    WorkloadFacts,
    WorkSpec,
)

MIB_PER_GIB = 1024
UNSCHEDULABLE = "0/1 nodes are available: 1 Insufficient {resource}."


def node_name() -> str:
    """This machine, as the node that every pod runs on."""
    return platform.node() or "localhost"


def requests_of(work: WorkSpec, gpu_resource: str, pods: int = 1) -> dict[str, Decimal]:
    """What so many pods ask for: cpu in cores, memory in GiB, GPUs under their resource name; no zeros."""
    amounts = {
        "cpu": Decimal(work.cpu_millicores) / 1000,
        "memory": Decimal(work.memory_mib) / MIB_PER_GIB,
        gpu_resource: Decimal(work.gpus),
    }
    return {name: amount * pods for name, amount in amounts.items() if amount}


def describe(job: JobRecord) -> AttemptFacts:
    """Everything known about a job at this moment."""
    return _attempt(job.spec, job=_job(job), workload=_workload(job), pods=_pods(job, None))


def describe_gone(job: JobRecord, at: int) -> AttemptFacts:
    """The last facts of a job that does not exist any more."""
    gone = _attempt(job.spec, job=_job(job), workload=_workload(job), pods=_pods(job, at))
    return AttemptFacts(
        cluster=gone.cluster,
        namespace=gone.namespace,
        name=gone.name,
        job_id=gone.job_id,
        attempt=gone.attempt,
        job=gone.job,
        job_gone=True,
        gone_at=moment(at),
        workload=gone.workload,
        pods=gone.pods,
    )


def describe_missing(cluster: str, key: str, job_id: str, attempt: int, at: int) -> AttemptFacts:
    """A job that should exist and does not. `key`: "namespace/name"."""
    namespace, _, name = key.partition("/")
    return AttemptFacts(
        cluster=cluster,
        namespace=namespace,
        name=name,
        job_id=job_id,
        attempt=attempt,
        job_gone=True,
        gone_at=moment(at),
    )


def _attempt(spec: JobSpec, *, job: JobFacts, workload: WorkloadFacts, pods: tuple[PodFacts, ...]) -> AttemptFacts:
    return AttemptFacts(
        cluster=spec.cluster,
        namespace=spec.namespace,
        name=spec.name,
        job_id=spec.job_id,
        attempt=spec.attempt,
        job=job,
        workload=workload,
        pods=pods,
    )


def _job(job: JobRecord) -> JobFacts:
    created = moment(job.created_at)
    assert created is not None  # noqa: S101 - for mypy: a number of seconds is always a time
    return JobFacts(
        uid=job.uid,
        name=job.spec.name,
        created_at=created,
        suspended=not job.admitted,
        started_at=moment(job.started_at),
        completed_at=moment(job.completed_at),
        deleting=job.deleting_at is not None,
        conditions=_conditions(job.conditions),
        active=len(job.active),
        succeeded=job.succeeded,
        failed=job.failed,
    )


def _workload(job: JobRecord) -> WorkloadFacts:
    digest = hashlib.sha256(job.uid.encode()).hexdigest()[:5]
    return WorkloadFacts(
        name=f"job-{job.spec.name}-{digest}",
        cluster_queue=job.spec.cluster_queue,
        conditions=_conditions(job.workload),
        flavors=dict(job.flavors),
    )


def _conditions(marks: Mapping[str, Mark]) -> tuple[Condition, ...]:
    return tuple(
        Condition(name, mark.status, mark.reason, mark.message, moment(mark.at)) for name, mark in marks.items()
    )


def _pods(job: JobRecord, gone_at: int | None) -> tuple[PodFacts, ...]:
    requests = requests_of(job.spec.work, job.spec.gpu_resource)
    return tuple(_pod(job, pod, requests, gone_at) for pod in job.pods)


def _pod(job: JobRecord, pod: PodRecord, requests: Mapping[str, Decimal], gone_at: int | None) -> PodFacts:
    return PodFacts(
        uid=pod.uid,
        name=pod.name,
        index=pod.index,
        phase=pod.status.phase,
        node=node_name() if pod.scheduled_at is not None else "",
        reason=pod.status.reason,
        message=pod.status.message,
        created_at=moment(pod.created_at),
        scheduled_at=moment(pod.scheduled_at),
        deletion_requested_at=moment(job.deleting_at),
        gone=gone_at is not None,
        gone_at=moment(gone_at),
        conditions=(_scheduled(job, pod),),
        containers=_containers(pod),
        requests=requests,
    )


def _scheduled(job: JobRecord, pod: PodRecord) -> Condition:
    if pod.scheduled_at is not None:
        return Condition("PodScheduled", True, at=moment(pod.scheduled_at))
    message = UNSCHEDULABLE.format(resource=job.spec.gpu_resource)
    return Condition("PodScheduled", False, "Unschedulable", message, moment(pod.created_at))


def _containers(pod: PodRecord) -> tuple[ContainerFacts, ...]:
    if pod.scheduled_at is None:
        return ()
    seen = pod.status.container
    return (
        ContainerFacts(
            name=CONTAINER,
            state=str(seen.get("state", "waiting")),
            reason=str(seen.get("reason", "" if seen else "ContainerCreating")),
            message=str(seen.get("message", "")),
            exit_code=seen.get("exit_code"),
            signal=seen.get("signal"),
            started_at=moment(seen.get("started_at")),
            finished_at=moment(seen.get("finished_at")),
        ),
    )
