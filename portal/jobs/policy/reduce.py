"""The reducer: an attempt as known, and facts, give the attempt as known from then on. Pure, and total.

Facts may come late, twice and out of order. A step that TRANSITIONS does not have is not taken; an end is final. Going
back to the queue needs evidence that is younger than the admission it undoes, by the clock of Kueue, which wrote both.
"""

from dataclasses import replace
from datetime import datetime

from portal.clusters.specs import AttemptFacts
from portal.jobs.models import State
from portal.jobs.policy.happenings import happenings_of
from portal.jobs.policy.pods import condition, earliest, merge_all
from portal.jobs.policy.reasons import VAGUE
from portal.jobs.policy.snapshot import AttemptSnapshot, PodSnapshot, Reduction, Terms
from portal.jobs.policy.states import is_terminal, may_follow
from portal.jobs.policy.verdict import Verdict, first_failure, judge, pod_words


def reduce(before: AttemptSnapshot, facts: AttemptFacts, terms: Terms, *, seen_at: datetime) -> Reduction:
    """What `facts` make of `before`. `seen_at` stands in where the cluster gives no time for something final."""
    facts = _ours(before, facts)
    merged = _merged(before, facts, terms)
    if is_terminal(before.state):
        after, withdraw = _afterthought(merged, facts, terms, seen_at), False
    else:
        verdict = judge(merged, facts, terms)
        after = _moved(merged, verdict, facts, terms, seen_at)
        withdraw = verdict is not None and verdict.withdraw and is_terminal(after.state)
    return Reduction(after=after, happenings=happenings_of(before, after, terms, seen_at=seen_at), withdraw=withdraw)


def _ours(before: AttemptSnapshot, facts: AttemptFacts) -> AttemptFacts:
    """Another object under our name means that ours is gone; what the other one does is not our story."""
    if facts.job is None or not before.object_uid or not facts.job.uid or facts.job.uid == before.object_uid:
        return facts
    return replace(facts, job=None, workload=None, pods=(), job_gone=True, gone_at=facts.job.created_at)


def _merged(before: AttemptSnapshot, facts: AttemptFacts, terms: Terms) -> AttemptSnapshot:
    """Pods, and everything that is true in whatever state."""
    pods = merge_all(before.pods, facts, terms)
    fresh = _stale_pods_marked(before, facts, pods)
    merged = replace(before, pods=fresh)
    nodes = tuple(dict.fromkeys((*before.nodes, *(pod.node for pod in merged.live if pod.node))))
    return replace(
        merged,
        nodes=nodes,
        object_uid=before.object_uid or (facts.job.uid if facts.job is not None else ""),
        created_at=before.created_at or (facts.job.created_at if facts.job is not None else None),
        flavor=_flavor(before, facts, terms),
        withdrawn_at=before.withdrawn_at or _withdrawn_at(merged, facts),
    )


def _stale_pods_marked(
    before: AttemptSnapshot, facts: AttemptFacts, pods: dict[str, PodSnapshot]
) -> dict[str, PodSnapshot]:
    """A pod that is heard of for the first time, but is older than the last eviction, belongs to the stay before."""
    since = before.requeued_at
    if since is None:
        return pods
    old = {pod.uid for pod in facts.pods or () if pod.created_at is not None and pod.created_at < since}
    return {uid: replace(pod, past=True) if uid in old and uid not in before.pods else pod for uid, pod in pods.items()}


def _flavor(before: AttemptSnapshot, facts: AttemptFacts, terms: Terms) -> str:
    """The ResourceFlavor of the GPUs, or of the cores where there are none; that of the last admission."""
    flavors = (facts.workload.flavors or {}) if facts.workload is not None else {}
    return flavors.get(terms.gpu_resource) or flavors.get("cpu") or next(iter(flavors.values()), "") or before.flavor


def _withdrawn_at(merged: AttemptSnapshot, facts: AttemptFacts) -> datetime | None:
    if not facts.job_gone or any(not (pod.gone or pod.is_over) for pod in merged.pods.values()):
        return None
    return facts.gone_at


# --- moving ---------------------------------------------------------------------------------------------------------


def _moved(
    merged: AttemptSnapshot, verdict: Verdict | None, facts: AttemptFacts, terms: Terms, seen_at: datetime
) -> AttemptSnapshot:
    if verdict is None:
        return merged
    if verdict.state is merged.state:
        return _stayed(merged, verdict, facts)
    if not may_follow(merged.state, verdict.state):
        return merged
    if is_terminal(verdict.state):
        return _ended(merged, verdict, facts, seen_at)
    if verdict.state is State.QUEUED:
        if merged.state is State.SUBMITTED:
            return replace(merged, state=State.QUEUED).saying(verdict.words)
        return _sent_back(merged, verdict, facts, seen_at)
    if _is_before_eviction(merged, verdict):
        return merged
    moved = replace(merged, state=verdict.state).saying(verdict.words)
    return _with_times(moved, facts, verdict)


def _stayed(merged: AttemptSnapshot, verdict: Verdict, facts: AttemptFacts) -> AttemptSnapshot:
    if merged.state is State.CANCELLING or _is_before_eviction(merged, verdict):
        return merged
    if merged.state is State.QUEUED and _is_older_wait(merged, verdict):
        return merged
    return _with_times(merged.saying(verdict.words), facts, verdict)


def _is_older_wait(merged: AttemptSnapshot, verdict: Verdict) -> bool:
    """Words about waiting from before the last eviction."""
    since = merged.requeued_at
    return since is not None and verdict.at is not None and verdict.at < since


def _is_before_eviction(merged: AttemptSnapshot, verdict: Verdict) -> bool:
    """An admission that an eviction has undone since. Pods need no such test: those of that stay are marked."""
    since = merged.requeued_at
    return verdict.state is State.STARTING and since is not None and verdict.at is not None and verdict.at < since


def _sent_back(merged: AttemptSnapshot, verdict: Verdict, facts: AttemptFacts, seen_at: datetime) -> AttemptSnapshot:
    evicted = condition(facts.workload.conditions, "Evicted") if facts.workload is not None else None
    explicit = evicted is not None and evicted.status is True
    if not _undoes(merged, verdict.at, explicit=explicit):
        return merged
    if not explicit and not (facts.job is not None and facts.job.suspended):
        return merged
    return replace(
        merged,
        state=State.QUEUED,
        requeued_at=verdict.at or seen_at,
        admitted_at=None,
        started_at=None,
        pods={uid: replace(pod, past=True) for uid, pod in merged.pods.items()},
    ).saying(verdict.words)


def _undoes(merged: AttemptSnapshot, at: datetime | None, *, explicit: bool) -> bool:
    """Whether evidence of having no quota, from `at`, is younger than what put the attempt where it is.

    Without a time only an explicit eviction counts. Times are whole seconds, so one that shares its second with the
    admission counts if it is explicit and is not the eviction that went before.
    """
    if at is None:
        return explicit
    if merged.requeued_at is not None and at <= merged.requeued_at:
        return False
    if merged.admitted_at is None:
        return True
    return at > merged.admitted_at or (explicit and at == merged.admitted_at)


def _with_times(moved: AttemptSnapshot, facts: AttemptFacts, verdict: Verdict) -> AttemptSnapshot:
    admitted = moved.admitted_at
    if admitted is None and moved.state in (State.STARTING, State.RUNNING):
        admitted = _admission(facts, after=moved.requeued_at)
        if admitted is None and verdict.state is State.STARTING:
            admitted = verdict.at
    started = earliest([moved.started_at, *(pod.started_at for pod in moved.live)])
    return replace(moved, admitted_at=admitted, started_at=started if moved.state is not State.QUEUED else None)


def _admission(facts: AttemptFacts, *, after: datetime | None) -> datetime | None:
    admitted = condition(facts.workload.conditions, "Admitted") if facts.workload is not None else None
    if admitted is None or admitted.status is not True or admitted.at is None:
        return None
    return None if after is not None and admitted.at < after else admitted.at


def _ended(merged: AttemptSnapshot, verdict: Verdict, facts: AttemptFacts, seen_at: datetime) -> AttemptSnapshot:
    started = earliest([merged.started_at, *(pod.started_at for pod in merged.live)])
    at = verdict.at or seen_at
    return replace(
        merged,
        state=verdict.state,
        exit_code=verdict.exit_code if verdict.exit_code is not None else merged.exit_code,
        admitted_at=merged.admitted_at or _admission(facts, after=merged.requeued_at),
        started_at=started,
        # Clocks of nodes and of the control plane differ by a little; nothing ends before it begins.
        ended_at=max(at, started) if started is not None else at,
    ).saying(verdict.words)


def _afterthought(merged: AttemptSnapshot, facts: AttemptFacts, terms: Terms, seen_at: datetime) -> AttemptSnapshot:
    """Nothing moves after an end; but a reason that came late may take the place of none."""
    if facts.job_gone and merged.withdrawn_at is None and not facts.pods:
        merged = replace(merged, withdrawn_at=facts.gone_at or seen_at)
    if merged.state is State.SUCCEEDED and merged.exit_code is None and terms.runs == 1:
        codes = {pod.exit_code for pod in merged.live if pod.exit_code is not None}
        return replace(merged, exit_code=codes.pop()) if len(codes) == 1 else merged
    if merged.state is not State.FAILED or merged.reason_code not in VAGUE:
        return merged
    cause = first_failure(merged)
    if cause is None or cause.reason_code in VAGUE:
        return merged
    over = condition(facts.job.conditions, "Failed") if facts.job is not None else None
    return replace(merged, exit_code=cause.exit_code).saying(pod_words(merged, cause, terms, over))
