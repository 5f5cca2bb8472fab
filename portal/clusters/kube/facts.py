"""Kubernetes objects, as JSON dicts, turned into the border's facts. Tolerates every missing and every null field."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from portal.clusters.kube.manifests import ATTEMPT_LABEL, JOB_LABEL
from portal.clusters.kube.values import amount, count, items, mapping, number, text, time
from portal.clusters.specs import Condition, ContainerFacts, JobFacts, PodFacts, WorkloadFacts
from portal.core.clock import now

Object = Mapping[str, Any]

JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
INDEX = "batch.kubernetes.io/job-completion-index"


def metadata(thing: Object) -> Mapping[str, Any]:
    return mapping(thing.get("metadata"))


def labels(thing: Object) -> Mapping[str, Any]:
    return mapping(metadata(thing).get("labels"))


def uid(thing: Object) -> str:
    return text(metadata(thing).get("uid"))


def place(thing: Object) -> tuple[str, str]:
    """(namespace, name)."""
    about = metadata(thing)
    return text(about.get("namespace")), text(about.get("name"))


def version(thing: Object) -> int:
    """resourceVersion as a number, 0 if unknown. Of one kind these compare as integers (KEP-5504)."""
    return number(metadata(thing).get("resourceVersion")) or 0


def whose(thing: Object) -> tuple[str, int]:
    """(job id, attempt) of our labels; ("", 0) where they are not."""
    found = labels(thing)
    return text(found.get(JOB_LABEL)), number(found.get(ATTEMPT_LABEL)) or 0


def owning_job(thing: Object) -> str:
    """Name of the Job that a pod or Workload belongs to; "" if none."""
    for owner in items(metadata(thing).get("ownerReferences")):
        if owner.get("kind") == "Job":
            return text(owner.get("name"))
    return text(labels(thing).get(JOB_NAME_LABEL))


def deletion(thing: Object) -> tuple[datetime | None, datetime | None]:
    """(when deletion was asked for, when the grace ends). `deletionTimestamp` is the latter, in the API's own words."""
    about = metadata(thing)
    ends = time(about.get("deletionTimestamp"))
    if ends is None:
        return None, None
    return ends - timedelta(seconds=count(about.get("deletionGracePeriodSeconds"))), ends


def conditions(status: Mapping[str, Any]) -> tuple[Condition, ...]:
    known = {"True": True, "False": False}
    return tuple(
        Condition(
            type=text(found.get("type")),
            status=known.get(text(found.get("status"))),
            reason=text(found.get("reason")),
            message=text(found.get("message")),
            at=time(found.get("lastTransitionTime")),
        )
        for found in items(status.get("conditions"))
    )


def job_facts(thing: Object) -> JobFacts:
    about, spec, status = metadata(thing), mapping(thing.get("spec")), mapping(thing.get("status"))
    started = time(status.get("startTime"))
    return JobFacts(
        uid=text(about.get("uid")),
        name=text(about.get("name")),
        # Always there; should a server ever leave it out, a late time is better than no fact at all.
        created_at=time(about.get("creationTimestamp")) or started or now(),
        suspended=spec.get("suspend") is True,
        started_at=started,
        completed_at=time(status.get("completionTime")),
        deleting=about.get("deletionTimestamp") is not None,
        conditions=conditions(status),
        active=count(status.get("active")),
        succeeded=count(status.get("succeeded")),
        failed=count(status.get("failed")),
    )


def workload_facts(thing: Object) -> WorkloadFacts:
    status = mapping(thing.get("status"))
    admission = mapping(status.get("admission"))
    flavors: dict[str, str] = {}
    for assigned in items(admission.get("podSetAssignments")):
        flavors |= {name: text(flavor) for name, flavor in mapping(assigned.get("flavors")).items() if text(flavor)}
    return WorkloadFacts(
        name=text(metadata(thing).get("name")),
        cluster_queue=text(admission.get("clusterQueue")),
        conditions=conditions(status),
        flavors=flavors,
        active=mapping(thing.get("spec")).get("active") is not False,
    )


def pod_facts(thing: Object) -> PodFacts:
    about, spec, status = metadata(thing), mapping(thing.get("spec")), mapping(thing.get("status"))
    found = conditions(status)
    node = text(spec.get("nodeName"))
    bound = next((each.at for each in found if each.type == "PodScheduled" and each.status), None)
    index = mapping(about.get("annotations")).get(INDEX) or labels(thing).get(INDEX)
    return PodFacts(
        uid=text(about.get("uid")),
        name=text(about.get("name")),
        index=number(index) or 0,
        phase=text(status.get("phase")) or "Pending",
        node=node,
        reason=text(status.get("reason")),
        message=text(status.get("message")),
        created_at=time(about.get("creationTimestamp")),
        # A pod that has a node but has lost the condition was bound no later than the kubelet's first word on it.
        scheduled_at=bound or (time(status.get("startTime")) if node else None),
        deletion_requested_at=deletion(thing)[0],
        conditions=found,
        containers=tuple(_containers(status)),
        requests=effective_requests(spec),
    )


def _containers(status: Mapping[str, Any]) -> list[ContainerFacts]:
    """Init containers first; of a restarted container the life before, as far as Kubernetes still tells."""
    lives: list[ContainerFacts] = []
    for group in ("initContainerStatuses", "containerStatuses"):
        for container in items(status.get(group)):
            restarts = count(container.get("restartCount"))
            before = mapping(container.get("lastState"))
            if restarts and mapping(before.get("terminated")):
                lives.append(_life(container, before, restarts - 1))
            lives.append(_life(container, mapping(container.get("state")), restarts))
    return lives


def _life(container: Mapping[str, Any], state: Mapping[str, Any], restart: int) -> ContainerFacts:
    name = next((word for word in ("terminated", "running", "waiting") if isinstance(state.get(word), dict)), "waiting")
    told = mapping(state.get(name))
    return ContainerFacts(
        name=text(container.get("name")),
        restart=restart,
        state=name,
        reason=text(told.get("reason")),
        message=text(told.get("message")),
        exit_code=number(told.get("exitCode")),
        signal=number(told.get("signal")) or None,
        started_at=time(told.get("startedAt")),
        finished_at=time(told.get("finishedAt")),
    )


def effective_requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """What a pod keeps from others, in cores, GiB and pieces: as the scheduler counts it.

    The larger of all containers together and of each init container (those that run on beside the others count with
    both), plus the overhead; an amount stated for the whole pod replaces the sum
    (https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers).
    """
    together: dict[str, Decimal] = {}
    first: dict[str, Decimal] = {}
    beside: dict[str, Decimal] = {}
    for container in items(spec.get("initContainers")):
        asked = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(beside, asked)
            asked = beside
        else:
            asked = _sum(beside, asked)
        first = {name: max(first.get(name, Decimal(0)), asked.get(name, Decimal(0))) for name in {*first, *asked}}
    for container in items(spec.get("containers")):
        _add(together, _requests(container))
    _add(together, beside)
    most = {name: max(first.get(name, Decimal(0)), together.get(name, Decimal(0))) for name in {*first, *together}}
    most |= _requests(spec)
    return _sum(most, _amounts(spec.get("overhead")))


def _requests(holder: Mapping[str, Any]) -> dict[str, Decimal]:
    resources = mapping(holder.get("resources"))
    # Limits count where no request is given: so does the API server's default.
    return _amounts(resources.get("limits")) | _amounts(resources.get("requests"))


def _amounts(found: object) -> dict[str, Decimal]:
    """Cores, memory and devices; scratch space and the like are nobody's quota here."""
    read = {name: amount(name, value) for name, value in mapping(found).items()}
    return {
        name: value for name, value in read.items() if value is not None and (name in {"cpu", "memory"} or "/" in name)
    }


def _add(into: dict[str, Decimal], more: Mapping[str, Decimal]) -> None:
    for name, value in more.items():
        into[name] = into.get(name, Decimal(0)) + value


def _sum(one: Mapping[str, Decimal], other: Mapping[str, Decimal]) -> dict[str, Decimal]:
    total = dict(one)
    _add(total, other)
    return total
