"""Ending a job on somebody's wish. The wish is a row; the deletion is dispatch's, the end is the cluster's word."""

from dataclasses import replace
from datetime import datetime

from django.db import transaction

from portal.audit import services as audit
from portal.core.clock import now
from portal.core.errors import Forbidden, Problem, Refused
from portal.core.hints import nudge
from portal.jobs.models import TERMINAL, Job, State
from portal.jobs.policy import AttemptSnapshot, Happening, Reason, Reduction, Words, reasons
from portal.jobs.policy.rights import may_cancel
from portal.jobs.services.changes import Change, apply, attempts_with_terms, pods_of, snapshot_of
from portal.teams.models import User
from portal.teams.selectors import roles_in

TRIES = 20


def cancel(*, actor: User, job: Job) -> Job:
    """Have a job end; the same wish twice is one. Answers with the job as it is now.

    A job that was never sent is cancelled at once; any other is cancelling until the cluster confirms that it is gone.
    If it had ended by itself before that, its true end stands. Raises `Forbidden`; `Refused` if it has ended in
    another way.
    """
    _demand_right(actor, job)
    for _ in range(TRIES):
        if _try(actor, job):
            job.refresh_from_db()
            return job
    raise RuntimeError(f"job {job.id}: its row changed {TRIES} times while it was being cancelled")


def _demand_right(actor: User, job: Job) -> None:
    if not may_cancel(roles_in(actor, job.team), user=actor, job=job):
        raise Forbidden("This is somebody else's job. A lead of the team can cancel it.")


@transaction.atomic
def _try(actor: User, job: Job) -> bool:
    attempt = attempts_with_terms().filter(job_id=job.pk).order_by("-number")[0]
    state = State(attempt.state)
    if state in (State.CANCELLING, State.CANCELLED):
        return True
    if state in TERMINAL:
        raise Refused(Problem("", f"It is over already: {state.label.lower()}. Nothing is left to cancel.", "over"))
    moment, name = now(), actor.get_username()
    before = snapshot_of(attempt, pods_of(attempt))
    never_sent = state is State.SUBMITTED and attempt.tries == 0
    reduction = _at_once(before, name, moment) if never_sent else _asked(before, name, moment)
    due_at = None if never_sent else moment
    # A claim does not raise the revision, so a first one made in this moment is excluded by name.
    guard: dict[str, object] = {"tries": 0, "claim_token": None} if never_sent else {}
    columns = {"due_at": due_at}
    change = Change(attempt=attempt, before=before, reduction=reduction, moment=moment, guard=guard, columns=columns)
    if not apply(change):
        return False
    Job.objects.filter(pk=job.pk).update(cancel_requested_at=moment, cancel_requested_by_name=name)
    audit.record(
        actor=actor,
        action="job.cancel",
        subject=job,
        before={"state": str(state)},
        after={"state": str(reduction.after.state)},
    )
    if due_at is not None:
        nudge("jobs.dispatch", attempt.pk)
    return True


def _at_once(before: AttemptSnapshot, name: str, moment: datetime) -> Reduction:
    words = Words(reason_code=Reason.CANCELLED, reason=reasons.cancelled(name))
    after = replace(before, state=State.CANCELLED, ended_at=moment, withdrawn_at=moment).saying(words)
    return Reduction(after=after, happenings=(Happening(moment, "beamtime", "cancelled", words.reason, "end"),))


def _asked(before: AttemptSnapshot, name: str, moment: datetime) -> Reduction:
    words = Words(reason=f"Asked to end by {name}. Its processes are being stopped.")
    happening = Happening(moment, "beamtime", "cancelling", f"{name} asked it to end.", "cancelling")
    return Reduction(after=replace(before, state=State.CANCELLING).saying(words), happenings=(happening,))
