"""Writing down how an errand went: filtered by id and token, so that whoever lost the claim changes nothing."""

import random
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction

from portal.clusters.specs import (
    AttemptFacts,
    ClusterError,
    JobFacts,
    NameTaken,
    PassingError,
    PermanentError,
    SpaceMissing,
)
from portal.core import metrics
from portal.core.clock import now
from portal.core.hints import nudge
from portal.jobs import policy
from portal.jobs.models import Attempt, State
from portal.jobs.policy import AttemptSnapshot, Happening, Reason, Reduction, Words, reasons
from portal.jobs.services.changes import Change, apply, apply_all, attempts_with_terms, pods_of, snapshot_of, terms_of
from portal.jobs.services.errands import Deleted, Errand, Made, NoPlace, NotBegun, Outcome, Trouble
from portal.quotas import services as quotas

FIRST_PAUSE, LONGEST_PAUSE, LONGEST_DELETION_PAUSE = 0.5, 60.0, 5.0
# From then on a person is told since when the cluster is silent; it is tried on for ever.
PATIENCE = timedelta(hours=1)
# After the object is gone, so long the watcher may still bring the end that it had before it went.
LAST_WORD = timedelta(seconds=3)
TRIES = 20
_FREED: dict[str, Any] = {"claim_token": None, "claimed_until": None}


def settle(errand: Errand, outcome: Outcome) -> None:
    """Apply an outcome; without effect if the claim has passed to somebody else."""
    if isinstance(outcome, Trouble) and isinstance(outcome.error, SpaceMissing):
        quotas.forget_provisioned(errand.queue)
    for _ in range(TRIES):
        if _try(errand, outcome):
            return
    raise RuntimeError(f"{errand.ref.name}: its row changed {TRIES} times while the cluster's answer was being applied")


@transaction.atomic
def _try(errand: Errand, outcome: Outcome) -> bool:
    """False when the row moved on meanwhile and must be read again."""
    rows = attempts_with_terms().filter(pk=errand.attempt_id, claim_token=errand.token)
    attempt = rows.first()
    if attempt is None:
        return True
    if isinstance(outcome, NotBegun):
        Attempt.objects.filter(pk=attempt.pk, claim_token=errand.token).update(**_FREED)
        return True
    moment = now()
    before = snapshot_of(attempt, pods_of(attempt))
    step = _step(errand, outcome, attempt, before, moment)
    if step.due_at is not None and step.due_at <= moment:
        nudge("jobs.dispatch", attempt.pk)
    change = _change(errand, step, attempt, before, moment)
    applied = apply(change)
    if applied and isinstance(outcome, Made):
        _count_made([change])
    return applied


def _count_made(changes: list[Change]) -> None:
    """How long each job took from its submission to its object, once that is written down."""
    for change in changes:
        took = change.moment - change.attempt.job.submitted_at
        transaction.on_commit(partial(metrics.JOB_DISPATCH.observe, took.total_seconds()), robust=True)


def _change(errand: Errand, step: "_Step", attempt: Attempt, before: AttemptSnapshot, moment: datetime) -> Change:
    """Guarded by the claim: whoever lost it changes nothing."""
    return Change(
        attempt=attempt,
        before=before,
        reduction=step.reduction,
        moment=moment,
        guard={"claim_token": errand.token},
        columns=step.columns,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    reduction: Reduction
    due_at: datetime | None
    columns: dict[str, Any]


def _step(errand: Errand, outcome: Outcome, attempt: Attempt, before: AttemptSnapshot, moment: datetime) -> _Step:
    if isinstance(outcome, Made):
        return _made(errand, outcome, attempt, before, moment)
    if isinstance(outcome, Deleted):
        return _deleted(outcome, attempt, before, moment)
    assert isinstance(outcome, Trouble)  # noqa: S101 (for the type checker; nothing else is left)
    if errand.spec is not None and isinstance(outcome.error, PermanentError):
        return _refused(outcome.error, errand, attempt, before, moment)
    return _hindered(outcome.error, errand, attempt, before, moment)


def _finish(reduction: Reduction, due_at: datetime | None, *, tries: int = 0, error: str = "", **columns: Any) -> _Step:
    kept = {"due_at": due_at, "tries": tries, "last_error": error.replace("\0", ""), **_FREED, **columns}
    return _Step(reduction=reduction, due_at=due_at, columns=kept)


# --- it was made --------------------------------------------------------------------------------------------------


def _made(errand: Errand, outcome: Made, attempt: Attempt, before: AttemptSnapshot, moment: datetime) -> _Step:
    """As if the watcher had seen the object: one state machine for both who bring the news."""
    created = outcome.created
    facts = AttemptFacts(
        cluster=errand.ref.cluster,
        namespace=errand.ref.namespace,
        name=errand.ref.name,
        job_id=str(attempt.job_id),
        attempt=attempt.number,
        job=JobFacts(uid=created.uid, name=errand.ref.name, created_at=created.created_at),
    )
    if before.state is State.SUBMITTED:
        reduction = policy.reduce(before, facts, terms_of(attempt), seen_at=moment)
    else:
        # The watcher was faster, or a cancellation came meanwhile: only what it could not know is added.
        uid, created_at = before.object_uid or created.uid, before.created_at or created.created_at
        reduction = Reduction(after=replace(before, object_uid=uid, created_at=created_at))
    # Asked to go while it was being made: now there is something to delete.
    due_at = {State.SUBMITTED: None, State.CANCELLING: moment}.get(before.state, attempt.due_at)
    digest = errand.spec.digest if errand.spec is not None else attempt.spec_digest
    return _finish(reduction, due_at, spec_digest=digest)


# --- it was to go ---------------------------------------------------------------------------------------------------


def _deleted(outcome: Deleted, attempt: Attempt, before: AttemptSnapshot, moment: datetime) -> _Step:
    if not outcome.done:
        pause = _pause(attempt.tries, longest=LONGEST_DELETION_PAUSE)
        return _finish(Reduction(after=before), moment + pause, tries=attempt.tries)
    gone = replace(before, withdrawn_at=before.withdrawn_at or moment)
    if before.state is not State.CANCELLING:
        return _finish(Reduction(after=gone), None)
    never_seen = not before.object_uid and before.created_at is None
    if not never_seen and (before.withdrawn_at is None or before.withdrawn_at > moment - LAST_WORD):
        return _finish(Reduction(after=gone), gone_at(gone, moment) + LAST_WORD)
    words = Words(reason_code=Reason.CANCELLED, reason=reasons.cancelled(attempt.job.cancel_requested_by_name))
    ended = max((pod.ended_at for pod in before.live if pod.ended_at is not None), default=gone.withdrawn_at)
    after = replace(gone, state=State.CANCELLED, ended_at=ended or moment).saying(words)
    happening = Happening(ended or moment, "beamtime", "cancelled", words.reason, "end")
    return _finish(Reduction(after=after, happenings=(happening,)), None)


def gone_at(gone: AttemptSnapshot, moment: datetime) -> datetime:
    """When the object was first known to be gone."""
    return gone.withdrawn_at or moment


# --- it was refused -------------------------------------------------------------------------------------------------


def _refused(error: ClusterError, errand: Errand, attempt: Attempt, before: AttemptSnapshot, moment: datetime) -> _Step:
    """The cluster will never make it: rejected, with its own words."""
    if not policy.may_follow(before.state, State.REJECTED):
        due_at = moment if before.state is State.CANCELLING else attempt.due_at
        return _finish(Reduction(after=before), due_at, error=str(error))
    taken = isinstance(error, NameTaken)
    words = Words(
        reason_code=Reason.NAME_TAKEN if taken else Reason.REFUSED,
        reason=reasons.name_taken(errand.ref.name) if taken else reasons.refused(),
        cluster_reason=error.reason if isinstance(error, PermanentError) else "",
        cluster_message=str(error),
    )
    after = replace(before, state=State.REJECTED, ended_at=moment, withdrawn_at=moment).saying(words)
    happening = Happening(moment, "beamtime", "rejected", str(error), "end")
    return _finish(Reduction(after=after, happenings=(happening,)), None, error=str(error))


# --- no answer, or not now --------------------------------------------------------------------------------------------


def _hindered(
    error: ClusterError, errand: Errand, attempt: Attempt, before: AttemptSnapshot, moment: datetime
) -> _Step:
    pause = _pause_after(error, attempt.tries)
    if before.state not in (State.SUBMITTED, State.CANCELLING):
        # The object was seen meanwhile, so nothing is left to try; or it is over, and its deletion is tried on.
        due_at = moment + pause if attempt.due_at is not None else None
        return _finish(Reduction(after=before), due_at, tries=attempt.tries, error=str(error))
    due_at = moment + (pause if before.state is State.SUBMITTED or errand.spec is None else timedelta(0))
    if isinstance(error, SpaceMissing) and attempt.tries <= 1:
        return _finish(Reduction(after=before), moment, tries=attempt.tries, error=str(error))
    words = _hindered_words(error, attempt, before, moment)
    happening = Happening(moment, "beamtime", "unanswered", str(error), f"unanswered:{words.reason_code}")
    reduction = Reduction(after=before.saying(words), happenings=(happening,))
    return _finish(reduction, due_at, tries=attempt.tries, error=str(error))


def _hindered_words(error: ClusterError, attempt: Attempt, before: AttemptSnapshot, moment: datetime) -> Words:
    cancelling = before.state is State.CANCELLING
    since = (attempt.job.cancel_requested_at if cancelling else None) or attempt.job.submitted_at
    said = {"cluster_message": str(error)}
    if moment - since > PATIENCE:
        sentence = reasons.no_word(f"{since:%d %b %Y, %H:%M} UTC")
        return Words(reason_code=Reason.NO_WORD, reason=sentence, **said)
    if isinstance(error, NoPlace | SpaceMissing):
        return Words(reason_code=Reason.CHECKING, reason=reasons.no_place(), **said)
    sentence = reasons.checking_end() if cancelling else reasons.checking()
    return Words(reason_code=Reason.CHECKING, reason=sentence, **said)


def _pause_after(error: ClusterError, tries: int) -> timedelta:
    asked = error.retry_after if isinstance(error, PassingError) else None
    own = _pause(tries, longest=LONGEST_PAUSE)
    return own if asked is None else max(own, timedelta(seconds=min(asked, LONGEST_PAUSE)))


def _pause(tries: int, *, longest: float) -> timedelta:
    """Doubling, with half of it by chance, so that a thousand rows do not come back in the same moment."""
    full = min(longest, FIRST_PAUSE * 2 ** min(tries, 10))
    return timedelta(seconds=full * (0.5 + random.random() / 2))  # noqa: S311 (no secret hangs on it)


# --- many at once -----------------------------------------------------------------------------------------------------


def settle_all(done: list[tuple[Errand, Outcome]]) -> None:
    """The same for many: what was simply made goes in one transaction, the rest one by one."""
    simple = [(errand, outcome) for errand, outcome in done if isinstance(outcome, Made)]
    if len(simple) > 1:
        left = _settle_made(simple)
        done = [pair for pair in done if not isinstance(pair[1], Made) or pair[0].attempt_id in left]
    for errand, outcome in done:
        settle(errand, outcome)


@transaction.atomic
def _settle_made(done: list[tuple[Errand, Made]]) -> set[int]:
    """Submitted ones become queued, unless the watcher was faster; the answer is the attempts that need a second look.

    Those to be cancelled are among them.
    """
    tokens = {errand.token for errand, _ in done}
    made = attempts_with_terms().filter(claim_token__in=tokens).exclude(state=State.CANCELLING)
    rows = {attempt.pk: attempt for attempt in made}
    left = {errand.attempt_id for errand, _ in done if errand.attempt_id not in rows}
    changes = []
    for errand, outcome in done:
        attempt = rows.get(errand.attempt_id)
        if attempt is not None:
            moment = now()
            # A submitted one has no pods yet, and of what was seen already nothing is worked out anew.
            before = snapshot_of(attempt, ())
            step = _made(errand, outcome, attempt, before, moment)
            changes.append(_change(errand, step, attempt, before, moment))
    late = {change.attempt.pk for change in apply_all(changes)}
    _count_made([change for change in changes if change.attempt.pk not in late])
    return left | late
