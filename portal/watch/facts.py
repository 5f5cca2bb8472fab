"""Reading and joining facts. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from portal.clusters.specs import AttemptFacts, ContainerFacts, ContainerRef, PodFacts

# "which attempt": job id and attempt number
Key = tuple[str, int]

_POD_OVER = frozenset({"Succeeded", "Failed"})
_JOB_OVER = frozenset({"Complete", "Failed"})
_HAS_LOG = frozenset({"running", "terminated"})


def key_of(facts: AttemptFacts) -> Key:
    return facts.job_id, facts.attempt


def joined(older: AttemptFacts | None, newer: AttemptFacts) -> AttemptFacts:
    """The newer facts, with the pods and container lives that only the older ones, not yet applied, have seen."""
    if older is None:
        return newer
    pods = {pod.uid: pod for pod in newer.pods}
    for pod in older.pods:
        present = pods.get(pod.uid)
        pods[pod.uid] = pod if present is None else replace(present, containers=_lives(pod, present))
    return replace(newer, pods=tuple(pods.values()), workload=newer.workload or older.workload)


def _lives(older: PodFacts, newer: PodFacts) -> tuple[ContainerFacts, ...]:
    lives = {(life.name, life.restart): life for life in older.containers if life.state == "terminated"}
    lives.update({(life.name, life.restart): life for life in newer.containers})
    return tuple(lives.values())


def containers_with_log(facts: AttemptFacts) -> Iterator[tuple[ContainerRef, PodFacts, ContainerFacts]]:
    """(which container life, its pod, its facts) of every container that has started."""
    for pod in facts.pods:
        for life in pod.containers:
            if life.state in _HAS_LOG:
                ref = ContainerRef(
                    cluster=facts.cluster,
                    namespace=facts.namespace,
                    pod=pod.name,
                    pod_uid=pod.uid,
                    container=life.name,
                    restart=life.restart,
                )
                yield ref, pod, life


def pod_is_over(pod: PodFacts) -> bool:
    return pod.gone or pod.phase in _POD_OVER


def is_finished(facts: AttemptFacts) -> bool:
    """Whether the attempt's object has ended or is gone, and with it all of its pods."""
    if not all(pod_is_over(pod) for pod in facts.pods):
        return False
    if facts.job_gone:
        return True
    job = facts.job
    return job is not None and (
        job.completed_at is not None or any(c.type in _JOB_OVER and c.status for c in job.conditions)
    )
