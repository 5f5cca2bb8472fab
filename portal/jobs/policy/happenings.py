"""Which events a change is worth. Each has a key, so that the same fact seen twice is one event."""

from datetime import datetime

from portal.jobs.models import State
from portal.jobs.policy.reasons import Reason
from portal.jobs.policy.snapshot import AttemptSnapshot, Happening, PodSnapshot, Terms
from portal.jobs.policy.states import is_terminal

_TROUBLES = frozenset({Reason.IMAGE, Reason.CONTAINER, Reason.UNSCHEDULABLE, Reason.NODE_LOST})
_WAITS = frozenset({Reason.QUOTA, Reason.NEVER_FITS, Reason.QUEUE_CLOSED, Reason.MISCONFIGURED, Reason.HELD})
# Of an array with thousands of runs, the first failures tell the story; the rest stand with their pods.
MOST_RUN_EVENTS = 50


def happenings_of(
    before: AttemptSnapshot, after: AttemptSnapshot, terms: Terms, *, seen_at: datetime
) -> tuple[Happening, ...]:
    """The events between two snapshots of an attempt, oldest first."""
    found = [*_of_pods(before, after, terms, seen_at)]
    if after.requeued_at is not None and after.requeued_at != before.requeued_at:
        found.append(_sent_back(after, after.requeued_at))
    else:
        found += _on_the_way(before, after, seen_at)
    if after.reason_code != before.reason_code and after.state is State.QUEUED and after.reason_code in _WAITS:
        # Once for each kind of reason and stay: the numbers in it change all the time.
        key = f"waits:{after.reason_code}:{_stamp(after.requeued_at)}"
        found.append(Happening(seen_at, "kueue", "waiting", after.cluster_message or after.reason, key))
    return tuple(sorted(found, key=lambda happening: happening.at))


def _on_the_way(before: AttemptSnapshot, after: AttemptSnapshot, seen_at: datetime) -> list[Happening]:
    """The stages that were reached, those that went by unseen among them: a short job is first heard of at its end."""
    stay = _stamp(after.requeued_at)
    found = []
    if before.state is not State.CANCELLING:
        if before.state is State.SUBMITTED and (after.state is State.QUEUED or after.created_at is not None):
            found.append(Happening(after.created_at or seen_at, "kueue", "queued", "In the queue.", f"queued:{stay}"))
        if _reached(State.STARTING, before, after) or (before.admitted_at is None and after.admitted_at is not None):
            message = f"Quota is reserved in flavor {after.flavor}." if after.flavor else "Quota is reserved."
            found.append(Happening(after.admitted_at or seen_at, "kueue", "starting", message, f"starting:{stay}"))
        if _reached(State.RUNNING, before, after) or (before.started_at is None and after.started_at is not None):
            message = f"The first container runs on node {after.nodes[0]}." if after.nodes else "A container runs."
            found.append(Happening(after.started_at or seen_at, "kubernetes", "running", message, f"running:{stay}"))
    if is_terminal(after.state) and not is_terminal(before.state):
        source = "beamtime" if after.state is State.CANCELLED else "kubernetes"
        message = after.reason or f"{after.state.label}."
        found.append(Happening(after.ended_at or seen_at, source, str(after.state), message, "end"))
    return found


def _reached(state: State, before: AttemptSnapshot, after: AttemptSnapshot) -> bool:
    return after.state is state and before.state is not state


def _sent_back(after: AttemptSnapshot, at: datetime) -> Happening:
    kind = Reason.PREEMPTED if after.reason_code == Reason.PREEMPTED else Reason.EVICTED
    return Happening(at, "kueue", str(kind), after.cluster_message or after.reason, f"back:{_stamp(at)}")


def _of_pods(before: AttemptSnapshot, after: AttemptSnapshot, terms: Terms, seen_at: datetime) -> list[Happening]:
    found = []
    told = sum(pod.phase == "Failed" for pod in before.pods.values())
    for uid, pod in after.pods.items():
        known = before.pods.get(uid)
        if pod.reason_code in _TROUBLES and (known is None or known.reason_code != pod.reason_code):
            said = ": ".join(part for part in (pod.cluster_reason, pod.cluster_message) if part) or pod.reason
            key = f"trouble:{uid}:{pod.reason_code}"
            found.append(Happening(pod.ended_at or seen_at, "kubernetes", pod.reason_code, said, key))
        if terms.runs > 1 and _failed_now(known, pod) and told < MOST_RUN_EVENTS:
            told += 1
            message = f"Run {pod.index} failed. {pod.reason}".strip()
            found.append(Happening(pod.ended_at or seen_at, "kubernetes", "run_failed", message, f"run:{uid}"))
    return found


def _failed_now(known: PodSnapshot | None, pod: PodSnapshot) -> bool:
    return pod.phase == "Failed" and not pod.past and (known is None or known.phase != "Failed")


def _stamp(at: datetime | None) -> str:
    return at.isoformat() if at is not None else ""
