"""Which state the facts speak for, and why. Looks at one moment only; what came before is weighed in `reduce`."""

from dataclasses import dataclass, field
from datetime import datetime

from portal.clusters.specs import AttemptFacts, Condition, JobFacts, WorkloadFacts
from portal.jobs.models import State
from portal.jobs.policy import reasons
from portal.jobs.policy.pods import condition, earliest, is_given_up, is_unheard, latest
from portal.jobs.policy.reasons import VAGUE, Reason
from portal.jobs.policy.snapshot import AttemptSnapshot, PodSnapshot, Terms, Words
from portal.jobs.policy.waiting import waiting_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`at` is the cluster's time of the evidence. `withdraw`: over, though the object in the cluster is not."""

    state: State
    at: datetime | None = None
    words: Words = field(default_factory=Words)
    exit_code: int | None = None
    withdraw: bool = False


def judge(attempt: AttemptSnapshot, facts: AttemptFacts, terms: Terms) -> Verdict | None:
    """What the facts say of an attempt whose pods are merged already; None if they say nothing.

    An end that the Job itself shows comes first, then an end by Kueue, then that the object is gone; only then what
    it is doing.
    """
    end = _end_of_job(attempt, facts, terms) or _end_by_kueue(attempt, facts.workload, terms)
    if end is not None:
        return end
    if facts.job_gone:
        return _gone(attempt, facts, terms)
    silent = _silent_node(attempt, facts)
    if silent is not None:
        return silent
    return _present(attempt, facts, terms)


# --- ends ---------------------------------------------------------------------------------------------------------


def _end_of_job(attempt: AttemptSnapshot, facts: AttemptFacts, terms: Terms) -> Verdict | None:
    job = facts.job
    if job is None:
        return None
    complete, failed = condition(job.conditions, "Complete"), condition(job.conditions, "Failed")
    over = next((item for item in (complete, failed) if item is not None and item.status is True), None)
    if over is None or (attempt.state is State.CANCELLING and _was_deleted_first(over, job, facts)):
        return None
    if over is complete:
        codes = {pod.exit_code for pod in attempt.live} or {None}
        at = job.completed_at or over.at or latest(pod.ended_at for pod in attempt.live)
        return Verdict(state=State.SUCCEEDED, at=at, exit_code=codes.pop() if len(codes) == 1 else None)
    at = over.at or latest(pod.ended_at for pod in attempt.live)
    words, exit_code = _why_failed(attempt, over, terms)
    return Verdict(state=State.FAILED, at=at, words=words, exit_code=exit_code)


def _was_deleted_first(over: Condition, job: JobFacts, facts: AttemptFacts) -> bool:
    """Whether the end is only the answer to our own deletion: it shows on a Job that goes, and not from before."""
    asked = earliest(pod.deletion_requested_at for pod in facts.pods or ())
    return job.deleting and (over.at is None or asked is None or over.at >= asked)


def _why_failed(attempt: AttemptSnapshot, over: Condition, terms: Terms) -> tuple[Words, int | None]:
    said = {"cluster_reason": over.reason or "", "cluster_message": over.message or ""}
    cause = first_failure(attempt)
    if over.reason == "DeadlineExceeded" and (cause is None or cause.reason_code in VAGUE):
        return Words(reason_code=Reason.TIME_LIMIT, reason=reasons.time_limit(terms.time_limit_seconds), **said), None
    if cause is not None:
        return pod_words(attempt, cause, terms, over), cause.exit_code
    if any(pod.gone and not pod.is_over for pod in attempt.live):
        return Words(reason_code=Reason.VANISHED, reason=reasons.vanished(), **said), None
    return Words(reason_code=Reason.FAILED, reason=reasons.failed(), **said), None


def first_failure(attempt: AttemptSnapshot) -> PodSnapshot | None:
    """The pod whose reason stands for the attempt: of those that went wrong the best known, then the earliest."""
    wrong = [pod for pod in attempt.live if pod.reason_code and (pod.is_over or pod.gone or pod.ended_at)]
    far = max((pod.ended_at for pod in wrong if pod.ended_at), default=None)
    return min(
        wrong,
        key=lambda pod: (pod.reason_code in VAGUE, (pod.ended_at or far) if far else 0, pod.index, pod.uid),
        default=None,
    )


def pod_words(attempt: AttemptSnapshot, pod: PodSnapshot, terms: Terms, over: Condition | None) -> Words:
    """A pod's reason as the attempt's, with the Job's own message behind the container's."""
    failures = len({other.index for other in attempt.live if other.phase == "Failed"})
    said = f"{over.reason or ''}: {over.message or ''}".strip(": ") if over is not None else ""
    return Words(
        reason_code=pod.reason_code,
        reason=reasons.in_array(pod.reason, index=pod.index, failures=max(failures, 1), runs=terms.runs),
        cluster_reason=pod.cluster_reason,
        cluster_message="\n".join(part for part in (pod.cluster_message, said) if part),
    )


def _end_by_kueue(attempt: AttemptSnapshot, workload: WorkloadFacts | None, terms: Terms) -> Verdict | None:
    """Kueue will never run it again: over its longest time, tried too often, or it could not be started."""
    if workload is None or attempt.state is State.CANCELLING:
        return None
    evicted, finished = condition(workload.conditions, "Evicted"), condition(workload.conditions, "Finished")
    if finished is not None and finished.status is True and finished.reason in ("OutOfSync", "FailedToStart"):
        return _given_up(finished, Reason.DEACTIVATED, reasons.deactivated())
    if evicted is None or evicted.status is not True or not (evicted.reason or "").startswith("DeactivatedDueTo"):
        return None
    if attempt.admitted_at is not None and evicted.at is not None and evicted.at < attempt.admitted_at:
        return None
    if "MaximumExecutionTime" in evicted.reason:
        return _given_up(evicted, Reason.TIME_LIMIT, reasons.time_limit(terms.time_limit_seconds))
    return _given_up(evicted, Reason.DEACTIVATED, reasons.deactivated())


def _given_up(source: Condition, code: Reason, sentence: str) -> Verdict:
    words = Words(
        reason_code=code,
        reason=sentence,
        cluster_reason=source.reason or "",
        cluster_message=source.message or "",
    )
    return Verdict(state=State.FAILED, at=source.at, words=words, withdraw=True)


def _gone(attempt: AttemptSnapshot, facts: AttemptFacts, terms: Terms) -> Verdict | None:
    at = facts.gone_at or latest(pod.ended_at for pod in attempt.live)
    if attempt.state is State.CANCELLING:
        if any(not (pod.gone or pod.is_over) for pod in attempt.live):
            # Its pods still hold their devices; the end is when they are gone.
            return None
        ended = latest(pod.ended_at for pod in attempt.live) or at
        words = Words(reason_code=Reason.CANCELLED, reason=reasons.cancelled(terms.cancelled_by))
        return Verdict(state=State.CANCELLED, at=ended, words=words)
    if attempt.state is State.SUBMITTED and facts.job is None and not attempt.object_uid:
        # Not made yet, or not heard of yet: dispatch will say.
        return None
    telling = {Reason.OUT_OF_MEMORY, Reason.NODE_LOST, Reason.TIME_LIMIT, Reason.EVICTED}
    cause = first_failure(attempt)
    if cause is not None and cause.reason_code in telling:
        return Verdict(state=State.LOST, at=at, words=pod_words(attempt, cause, terms, None), exit_code=cause.exit_code)
    return Verdict(
        state=State.LOST, at=at, words=Words(reason_code=Reason.DELETED_OUTSIDE, reason=reasons.deleted_outside())
    )


def _silent_node(attempt: AttemptSnapshot, facts: AttemptFacts) -> Verdict | None:
    """The Job is to fail, and all that goes on is on nodes that nobody hears: no witness will come."""
    failing = condition(facts.job.conditions, "FailureTarget") if facts.job is not None else None
    going = [pod for pod in attempt.live if not (pod.is_over or pod.gone)]
    if attempt.state is State.CANCELLING or failing is None or failing.status is not True:
        return None
    if not going or not all(is_given_up(pod) for pod in going):
        return None
    words = Words(
        reason_code=Reason.NODE_LOST,
        reason=reasons.node_lost(going[0].node),
        cluster_reason=going[0].cluster_reason,
        cluster_message=going[0].cluster_message,
    )
    return Verdict(state=State.LOST, at=failing.at, words=words, withdraw=True)


# --- what it is doing -----------------------------------------------------------------------------------------------


def _present(attempt: AttemptSnapshot, facts: AttemptFacts, terms: Terms) -> Verdict | None:
    job, workload = facts.job, facts.workload
    if job is None and workload is None and not facts.pods:
        return None
    evicted = condition(workload.conditions, "Evicted") if workload is not None else None
    if evicted is not None and evicted.status is True:
        return Verdict(state=State.QUEUED, at=evicted.at, words=waiting_words(workload, requeued=True))
    if any(pod.started_at is not None for pod in attempt.live):
        at = earliest(pod.started_at for pod in attempt.live)
        return Verdict(state=State.RUNNING, at=at, words=_running_words(attempt, job, terms))
    admitted = _admitted_at(job, workload)
    if admitted is not None:
        return Verdict(state=State.STARTING, at=admitted.at, words=_starting_words(attempt))
    return Verdict(
        state=State.QUEUED,
        at=_suspended_at(job, workload),
        words=waiting_words(workload, requeued=attempt.requeued_at is not None),
    )


@dataclass(frozen=True, slots=True)
class _Since:
    at: datetime | None


def _admitted_at(job: JobFacts | None, workload: WorkloadFacts | None) -> _Since | None:
    """When Kueue let it in, if it has; without a Workload to ask, what the Job's own suspension says."""
    admitted = condition(workload.conditions, "Admitted") if workload is not None else None
    if admitted is not None and admitted.status is not None:
        return _Since(admitted.at or (job.started_at if job is not None else None)) if admitted.status else None
    reserved = condition(workload.conditions, "QuotaReserved") if workload is not None else None
    if reserved is not None and reserved.status is False:
        return None
    if job is not None and not job.suspended:
        return _Since(job.started_at)
    return None


def _suspended_at(job: JobFacts | None, workload: WorkloadFacts | None) -> datetime | None:
    """Since when it has no quota, as far as something says so; None where nothing does."""
    for conditions, kind, status in (
        (workload.conditions if workload is not None else (), "QuotaReserved", False),
        (workload.conditions if workload is not None else (), "Admitted", False),
        (job.conditions if job is not None else (), "Suspended", True),
    ):
        found = condition(conditions, kind)
        if found is not None and found.status is status and found.at is not None:
            return found.at
    return None


def _starting_words(attempt: AttemptSnapshot) -> Words:
    troubled = next((pod for pod in attempt.live if pod.reason_code), None)
    if troubled is not None:
        return troubled.words
    node = next((pod.node for pod in attempt.live if pod.node), "")
    return Words(reason=f"Starting on node {node}." if node else "Its quota is reserved; it waits for a node.")


def _running_words(attempt: AttemptSnapshot, job: JobFacts | None, terms: Terms) -> Words:
    silent = next((pod for pod in attempt.live if is_unheard(pod)), None)
    if silent is not None:
        return silent.words
    if terms.runs > 1 and job is not None:
        done, failed = job.succeeded or 0, job.failed or 0
        return Words(reason=f"{done + failed} of {terms.runs} runs have ended, {failed} of them failed.")
    return Words()
