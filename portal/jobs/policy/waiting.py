"""Why Kueue lets an attempt wait, from the conditions of its Workload.

Kueue 0.18 and 0.19 write `Pending`, `Inadmissible` and so on as reasons of QuotaReserved=False; newer ones may write
finer words. The status is looked at first, then the message, whose clauses come from Kueue's flavor assigner
(kueue/pkg/scheduler/flavorassigner/flavorassigner.go, pkg/controller/core/workload_controller.go). Its message is
kept as it is; the sentence here only says the gist.
"""

import re

from portal.clusters.specs import Condition, WorkloadFacts
from portal.jobs.policy import reasons
from portal.jobs.policy.pods import condition
from portal.jobs.policy.reasons import Reason
from portal.jobs.policy.snapshot import Words

_MORE = re.compile(r"insufficient unused quota for (\S+) in flavor (\S+), (\S+) more needed")
_NEVER = re.compile(
    r"insufficient quota for (\S+) in flavor (\S+), .*?"
    r"current podset request \(([^)]*)\) > maximum capacity \(([^)]*)\)"
)
_CLOSED = re.compile(r"\b(ClusterQueue|LocalQueue) (\S+ )?is (stopped|inactive|terminating)")
_WRONG = re.compile(
    r"doesn't exist|not found|doesn't match|untolerated taint|unavailable in ClusterQueue|terminating or missing"
    r"|validation failed|LimitRange"
)


def waiting_words(workload: WorkloadFacts | None, *, requeued: bool) -> Words:
    """The words of a queued attempt. `requeued`: Kueue has taken its quota back before."""
    if workload is None:
        return Words(reason_code=Reason.WAITING, reason="Waits to be taken into its queue.")
    reserved = condition(workload.conditions, "QuotaReserved")
    evicted = condition(workload.conditions, "Evicted")
    if (evicted is not None and evicted.status is True) or (requeued and reserved is None):
        return _evicted_words(evicted, reserved)
    if not workload.active and workload.active is not None:
        return Words(reason_code=Reason.HELD, reason=reasons.held(), **_own(reserved))
    if reserved is None:
        return Words(reason_code=Reason.WAITING, reason="Waits for its queue to look at it.")
    if reserved.status is True:
        admitted = condition(workload.conditions, "Admitted")
        sentence = "Its quota is reserved; it waits for admission checks."
        return Words(reason_code=Reason.WAITING, reason=sentence, **_own(admitted or reserved))
    return _pending_words(reserved)


def _pending_words(reserved: Condition) -> Words:
    message = reserved.message or ""
    own = _own(reserved)
    if reserved.reason == "Deactivated":
        return Words(reason_code=Reason.HELD, reason=reasons.held(), **own)
    more, never = _MORE.search(message), _NEVER.search(message)
    if more:
        resource, flavor, count = more.groups()
        sentence = f"No room now: {_more(count, resource)} in flavor {flavor}. It starts by itself once others end."
        return Words(reason_code=Reason.QUOTA, reason=sentence, **own)
    if never:
        resource, _flavor, asked, most = never.groups()
        sentence = f"Can never fit: it asks {asked} {_plural(resource)}, the most this queue can give is {most}."
        return Words(reason_code=Reason.NEVER_FITS, reason=f"{sentence} Cancel it and ask for less.", **own)
    closed = _CLOSED.search(message)
    if closed:
        queue = f"{closed.group(1)} {closed.group(2) or ''}".strip()
        sentence = f"{queue} takes no work now. It goes on by itself once an administrator opens it again."
        return Words(reason_code=Reason.QUEUE_CLOSED, reason=sentence, **own)
    if _WRONG.search(message):
        sentence = "Set up wrongly, so it cannot be admitted. Show the words below to an administrator."
        return Words(reason_code=Reason.MISCONFIGURED, reason=sentence, **own)
    if "preempt" in message.lower():
        sentence = "Room is being made: it waits for other jobs to be preempted."
        return Words(reason_code=Reason.QUOTA, reason=sentence, **own)
    return Words(reason_code=Reason.WAITING, reason="Waits in the queue.", **own)


def _evicted_words(evicted: Condition | None, reserved: Condition | None) -> Words:
    """After an eviction, Kueue's newest message stands beside the reason for having been sent back."""
    reason = (evicted.reason or "") if evicted is not None else ""
    newest = reserved if reserved is not None and reserved.status is False and reserved.message else evicted
    own = {"cluster_reason": reason, "cluster_message": (newest.message or "") if newest is not None else ""}
    back = "It is in the queue again; no try is used up."
    if reason == "Deactivated":
        return Words(reason_code=Reason.HELD, reason=reasons.held(), **own)
    if reason == "Preempted":
        sentence = f"Preempted: another job took the quota. {back} It begins anew unless it saves checkpoints."
        return Words(reason_code=Reason.PREEMPTED, reason=sentence, **own)
    if reason in ("ClusterQueueStopped", "LocalQueueStopped"):
        sentence = f"Its queue was stopped by an administrator. {back}"
        return Words(reason_code=Reason.QUEUE_CLOSED, reason=sentence, **own)
    why = {
        "PodsReadyTimeout": "Its pods did not start in time.",
        "AdmissionCheck": "An admission check took its quota back.",
        "NodeFailures": "A node of it failed.",
    }.get(reason, "Its quota was taken back.")
    return Words(reason_code=Reason.EVICTED, reason=f"{why} {back}", **own)


def _more(count: str, resource: str) -> str:
    """What is short, with Kueue's own number, which is a Kubernetes quantity such as "2", "500m" or "4Gi"."""
    if resource.endswith("gpu") and count == "1":
        return "1 more GPU is needed"
    if resource == "memory":
        return f"{count} more memory is needed"
    return f"{count} more {_plural(resource)} are needed"


def _plural(resource: str) -> str:
    return {"cpu": "cores", "memory": "of memory"}.get(resource, "GPUs" if resource.endswith("gpu") else resource)


def _own(source: Condition | None) -> dict[str, str]:
    if source is None:
        return {}
    return {"cluster_reason": source.reason or "", "cluster_message": source.message or ""}
