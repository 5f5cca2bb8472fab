"""What one pod tells: its facts put together with what was known, and the reason in them.

Facts may be old, repeated or incomplete, and any field may be empty. What was seen first stays: a pod's end, its times
and its reason survive the pod.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from portal.clusters.specs import AttemptFacts, Condition, ContainerFacts, PodFacts
from portal.jobs.policy import reasons
from portal.jobs.policy.reasons import VAGUE, Reason
from portal.jobs.policy.snapshot import PodSnapshot, Terms, Words

_PHASES = {"": 0, "Unknown": 0, "Pending": 1, "Running": 2, "Succeeded": 3, "Failed": 3}

# Waiting reasons of the kubelet (k8s.io/kubernetes/pkg/kubelet/images/types.go and container/sync_result.go).
_IMAGE = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
    | {"ImageInspectError", "SignatureValidationFailed"}
)
_CONTAINER = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_CANNOT_START = frozenset({"StartError", "ContainerCannotRun"})

# Reasons of the pod condition DisruptionTarget
# (https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions).
_LOST = frozenset({"DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet"})
_SHUT_DOWN = frozenset({"NodeShutdown", "Shutdown", "Terminated"})
_LOST_POD = _SHUT_DOWN | {"NodeLost"}


def merge_all(known: Mapping[str, PodSnapshot], facts: AttemptFacts, terms: Terms) -> dict[str, PodSnapshot]:
    """All pods after these facts, by uid."""
    merged = dict(known)
    for pod in facts.pods or ():
        if pod.uid:
            merged[pod.uid] = merge(merged.get(pod.uid), pod, terms)
    return merged


def merge(known: PodSnapshot | None, facts: PodFacts, terms: Terms) -> PodSnapshot:
    """One pod after these facts."""
    old = known or PodSnapshot(uid=facts.uid, name=facts.name or "", index=facts.index or 0)
    containers = tuple(facts.containers or ())
    phase = facts.phase or ""
    started = earliest([old.started_at, *(c.started_at for c in containers)])
    seen = replace(
        old,
        node=old.node or facts.node or "",
        phase=phase if not old.is_over and _PHASES.get(phase, 0) > _PHASES.get(old.phase, 0) else old.phase,
        scheduled_at=old.scheduled_at or facts.scheduled_at,
        started_at=started,
        ended_at=old.ended_at or _end(facts, containers),
        exit_code=old.exit_code if old.exit_code is not None else _exit_code(containers),
        gone=old.gone or bool(facts.gone),
    )
    words = explain(facts, seen, terms)
    if _better(old, seen, words):
        return seen.saying(words)
    return seen


def _better(old: PodSnapshot, seen: PodSnapshot, words: Words) -> bool:
    """Whether new words may stand in the place of the old: those of an end stay, passing ones pass."""
    if old.is_over or old.gone:
        return old.reason_code in VAGUE and words.reason_code not in VAGUE
    passing = {Reason.IMAGE, Reason.CONTAINER, Reason.UNSCHEDULABLE, Reason.NODE_LOST, ""}
    return bool(words.reason_code) or (old.reason_code in passing and seen.started_at is not None)


def explain(facts: PodFacts, seen: PodSnapshot, terms: Terms) -> Words:
    """The reason in a pod's facts, without words if nothing is wrong."""
    containers = tuple(facts.containers or ())
    words = _of_disruption(facts, containers) or _of_end(facts, containers, terms)
    if words is None and seen.started_at is None and not seen.is_over:
        words = _of_waiting(facts, containers)
    if words is None and not (seen.is_over or facts.gone):
        words = _of_silence(facts, containers)
    if words is None and facts.gone and not _has_ended(containers) and not seen.is_over:
        words = Words(reason_code=Reason.VANISHED, reason=reasons.vanished(), **_own(facts))
    return words or Words()


def _of_disruption(facts: PodFacts, containers: tuple[ContainerFacts, ...]) -> Words | None:
    """The node or the cluster took the pod away. Memory limits come first: they explain more."""
    if any((c.reason or "") == "OOMKilled" for c in containers):
        return None
    target = condition(facts.conditions, "DisruptionTarget")
    disrupted = target is not None and target.status is True
    reason = (target.reason or "") if target is not None and disrupted else ""
    words = {
        "cluster_reason": reason or facts.reason or "",
        "cluster_message": (target.message if target is not None and disrupted else "") or facts.message or "",
    }
    if facts.reason == "Evicted" or (disrupted and reason not in _LOST):
        return Words(reason_code=Reason.EVICTED, reason=reasons.evicted_by_node(facts.node or ""), **words)
    if disrupted or (facts.reason or "") in _LOST_POD:
        ended = _has_ended(containers) or facts.gone or facts.phase in ("Failed", "Succeeded")
        left = reasons.node_shut_down if facts.reason in _SHUT_DOWN else reasons.node_lost
        sentence = left if ended else reasons.node_silent
        return Words(reason_code=Reason.NODE_LOST, reason=sentence(facts.node or ""), **words)
    return None


def _of_end(facts: PodFacts, containers: tuple[ContainerFacts, ...], terms: Terms) -> Words | None:
    killed = next((c for c in containers if (c.reason or "") == "OOMKilled"), None)
    if killed is not None:
        sentence = reasons.out_of_memory(terms.memory_mib)
        return Words(reason_code=Reason.OUT_OF_MEMORY, reason=sentence, **_container_words(facts, killed))
    if facts.reason == "DeadlineExceeded":
        # Before the containers: they only show the signal that the kubelet ended them with.
        sentence = reasons.time_limit(terms.time_limit_seconds)
        return Words(reason_code=Reason.TIME_LIMIT, reason=sentence, **_own(facts))
    for container in containers:
        if container.state == "terminated":
            words = _of_terminated(facts, container, terms)
            if words is not None:
                return words
    if facts.phase == "Failed" and not containers:
        code = Reason.NODE_REFUSED if facts.reason else Reason.FAILED
        sentence = reasons.node_refused(facts.node or "") if facts.reason else reasons.failed()
        return Words(reason_code=code, reason=sentence, **_own(facts))
    return None


def _of_terminated(facts: PodFacts, container: ContainerFacts, terms: Terms) -> Words | None:
    code = container.exit_code
    reason = container.reason or ""
    own = _container_words(facts, container)
    number = container.signal or (code - 128 if code is not None and 128 < code <= 128 + 64 else 0)
    if reason in _CANNOT_START:
        return Words(reason_code=Reason.CANNOT_START, reason=reasons.cannot_start(), **own)
    if reason == "ContainerStatusUnknown":
        return Words(reason_code=Reason.VANISHED, reason=reasons.status_unknown(), **own)
    if reason == "DeadlineExceeded":
        return Words(reason_code=Reason.TIME_LIMIT, reason=reasons.time_limit(terms.time_limit_seconds), **own)
    if (number or code) and _after_deletion(facts, container):
        return Words(reason_code=Reason.STOPPED, reason=reasons.stopped(), **own)
    if number:
        return Words(reason_code=Reason.SIGNAL, reason=reasons.killed_by(number), **own)
    if code:
        return Words(reason_code=Reason.EXIT_CODE, reason=reasons.exit_code(code), **own)
    return None


def _after_deletion(facts: PodFacts, container: ContainerFacts) -> bool:
    """Whether the pod was told to go before the container ended, so that its exit code tells nothing of its own."""
    asked, ended = facts.deletion_requested_at, container.finished_at
    return asked is not None and (ended is None or ended >= asked)


def _of_waiting(facts: PodFacts, containers: tuple[ContainerFacts, ...]) -> Words | None:
    for container in containers:
        reason = container.reason or ""
        own = {"cluster_reason": reason, "cluster_message": container.message or ""}
        if reason in _IMAGE:
            return Words(reason_code=Reason.IMAGE, reason=reasons.image(), **own)
        if reason in _CONTAINER:
            return Words(reason_code=Reason.CONTAINER, reason=reasons.container_config(), **own)
    scheduled = condition(facts.conditions, "PodScheduled")
    if scheduled is not None and scheduled.status is False and not facts.node:
        return Words(
            reason_code=Reason.UNSCHEDULABLE,
            reason=reasons.unschedulable(),
            cluster_reason=scheduled.reason or "",
            cluster_message=scheduled.message or "",
        )
    return None


def _of_silence(facts: PodFacts, containers: tuple[ContainerFacts, ...]) -> Words | None:
    """The kubelet says nothing: the cluster has made the pod unready, against the kubelet's own last word on it.

    Kubernetes gives a node up only while others are left (its node controller evicts nothing while all are silent), so
    this may be all that is ever heard
    (https://kubernetes.io/docs/concepts/architecture/nodes/#node-controller).
    """
    ready, inside = condition(facts.conditions, "Ready"), condition(facts.conditions, "ContainersReady")
    if ready is None or ready.status is not False or inside is None or inside.status is not True:
        return None
    if _has_ended(containers):
        return None
    return Words(reason_code=Reason.NODE_LOST, reason=reasons.node_silent(facts.node or ""))


def is_unheard(pod: PodSnapshot) -> bool:
    """Its node is silent, and nobody has seen how the pod ended."""
    return pod.reason_code == Reason.NODE_LOST and not pod.gone and not pod.is_over and pod.ended_at is None


def is_given_up(pod: PodSnapshot) -> bool:
    """The same, and the cluster has said that it gives the node up."""
    return is_unheard(pod) and bool(pod.cluster_reason)


def condition(conditions: Iterable[Condition] | None, kind: str) -> Condition | None:
    """The condition of a type, or None."""
    return next((item for item in conditions or () if item.type == kind), None)


def earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def latest(moments: Iterable[datetime | None]) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)


def _own(facts: PodFacts) -> dict[str, str]:
    return {"cluster_reason": facts.reason or "", "cluster_message": facts.message or ""}


def _container_words(facts: PodFacts, container: ContainerFacts) -> dict[str, str]:
    return {"cluster_reason": container.reason or "", "cluster_message": container.message or facts.message or ""}


def _has_ended(containers: tuple[ContainerFacts, ...]) -> bool:
    return bool(containers) and all(container.state == "terminated" for container in containers)


def _end(facts: PodFacts, containers: tuple[ContainerFacts, ...]) -> datetime | None:
    if _has_ended(containers):
        return latest(container.finished_at for container in containers)
    return facts.gone_at if facts.gone else None


def _exit_code(containers: tuple[ContainerFacts, ...]) -> int | None:
    """Of the first container that failed, else of the first that ended; None while any goes on."""
    if not _has_ended(containers):
        return None
    codes = [container.exit_code for container in containers if container.exit_code is not None]
    return next((code for code in codes if code), codes[0] if codes else None)
