"""Writing down what became of an attempt: the only place that moves attempt and job on.

An attempt's `revision` is the guard: whoever read an older one changes nothing and must look again. The job mirrors
its attempt inside the same transaction, behind the lock that the attempt's UPDATE holds.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from django.db.models import F, QuerySet

from portal.core.bus import announce
from portal.core.hints import nudge
from portal.jobs.models import TERMINAL, Attempt, Event, Job, JobSecret, Pod, State
from portal.jobs.policy import AttemptSnapshot, Happening, PodSnapshot, Reduction, Terms

_EVENTS = UUID("6f0d6a54-5d44-4b63-9b0e-0c2f6f7f3c11")
_POD_FIELDS = tuple(field.name for field in dataclasses.fields(PodSnapshot))
_OWN_FIELDS = tuple(field.name for field in dataclasses.fields(AttemptSnapshot) if field.name != "pods")
# What the job's row repeats of its attempt, for lists.
_MIRRORED = ("state", "reason_code", "reason", "started_at", "ended_at")


def attempts_with_terms() -> QuerySet[Attempt]:
    """Attempts with their job, without its heavy columns; of its work only the numbers that sentences need."""
    return (
        Attempt.objects.select_related("job")
        .defer("job__work", "job__values", "job__estimate", "job__node_selector")
        .annotate(
            work_runs=F("job__work__runs"),
            work_memory=F("job__work__memory_mib"),
            work_limit=F("job__work__time_limit_seconds"),
        )
    )


def terms_of(attempt: Attempt) -> Terms:
    """What was asked for; `attempt` comes from `attempts_with_terms`."""
    row: Any = attempt
    return Terms(
        runs=row.work_runs or 1,
        memory_mib=row.work_memory or 0,
        time_limit_seconds=row.work_limit,
        gpu_resource=attempt.job.gpu_resource,
        cancelled_by=attempt.job.cancel_requested_by_name,
    )


def snapshot_of(attempt: Attempt, pods: Iterable[Pod]) -> AttemptSnapshot:
    """The attempt as the reducer takes it."""
    values = {name: getattr(attempt, name) for name in _OWN_FIELDS}
    return AttemptSnapshot(
        **values | {"state": State(attempt.state), "nodes": tuple(attempt.nodes)},
        pods={pod.uid: PodSnapshot(**{name: getattr(pod, name) for name in _POD_FIELDS}) for pod in pods},
    )


def apply(
    attempt: Attempt,
    before: AttemptSnapshot,
    reduction: Reduction,
    *,
    moment: datetime,
    guard: Mapping[str, object] | None = None,
    **columns: object,
) -> bool:
    """Store what a reduction changed, and `columns` of the attempt beside it. False if somebody else changed it first.

    Inside the caller's transaction; nothing is written when it answers False. Facts that were known already write
    nothing. `guard` names more columns that must still be what they were, such as the claim.
    """
    after = reduction.after
    changed = _changed(before, after)
    due = {} if after.state is before.state else _due(before, after, withdraw=reduction.withdraw, moment=moment)
    columns = due | columns
    row = Attempt.objects.filter(pk=attempt.pk, revision=attempt.revision, **(guard or {}))
    if not changed and before.pods == after.pods:
        return not columns or bool(row.update(**columns))
    if not row.update(revision=F("revision") + 1, **changed, **columns):
        return False
    _store_pods(attempt, before, after)
    record_events(attempt.job, attempt, reduction.happenings)
    _mirror(attempt.job, changed)
    if after.state in TERMINAL and before.state not in TERMINAL:
        JobSecret.objects.filter(job_id=attempt.job_id).delete()
    if due.get("due_at") is not None:
        nudge("jobs.dispatch", attempt.pk)
    announce_change(attempt.job)
    return True


def _changed(before: AttemptSnapshot, after: AttemptSnapshot) -> dict[str, Any]:
    found = {name: getattr(after, name) for name in _OWN_FIELDS if getattr(after, name) != getattr(before, name)}
    return {name: _column(Attempt, name, value) for name, value in found.items()}


def _due(before: AttemptSnapshot, after: AttemptSnapshot, *, withdraw: bool, moment: datetime) -> dict[str, Any]:
    """What is left to do in the cluster after a change of state; cancelling stays due until it is confirmed."""
    if after.state in TERMINAL:
        return {"due_at": moment if withdraw else None}
    if before.state is State.SUBMITTED and after.state is not State.CANCELLING:
        return {"due_at": None}
    return {}


def _store_pods(attempt: Attempt, before: AttemptSnapshot, after: AttemptSnapshot) -> None:
    rows = [
        Pod(attempt=attempt, **{name: _column(Pod, name, getattr(pod, name)) for name in _POD_FIELDS})
        for uid, pod in after.pods.items()
        if before.pods.get(uid) != pod
    ]
    if rows:
        fields = [name for name in _POD_FIELDS if name != "uid"]
        Pod.objects.bulk_create(rows, update_conflicts=True, unique_fields=["uid"], update_fields=fields)


def _mirror(job: Job, changed: dict[str, Any]) -> None:
    seen = {name: value for name, value in changed.items() if name in _MIRRORED}
    Job.objects.filter(pk=job.pk).update(revision=F("revision") + 1, **seen)
    for name, value in seen.items():
        setattr(job, name, value)
    job.revision += 1


def _column(model: type[Attempt] | type[Pod], name: str, value: Any) -> Any:
    """A value as the column takes it: no longer than it is, without the NUL that PostgreSQL refuses in a text."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str) and not isinstance(value, State):
        return value.replace("\0", "")[: getattr(model._meta.get_field(name), "max_length", None)]
    return value


def record_event(job: Job, attempt: Attempt, *, at: datetime, kind: str, message: str, key: str) -> None:
    """An event of Beamtime's own doing, once."""
    record_events(job, attempt, [Happening(at, "beamtime", kind, message, key)])


def record_events(job: Job, attempt: Attempt, happenings: Iterable[Happening]) -> None:
    """Each event once, however often it is seen."""
    rows = [
        Event(
            job=job,
            attempt_number=attempt.number,
            at=happening.at,
            source=happening.source,
            kind=happening.kind,
            message=happening.message.replace("\0", ""),
            key=str(uuid5(_EVENTS, f"{attempt.object_name}/{happening.key}")),
        )
        for happening in happenings
    ]
    if rows:
        Event.objects.bulk_create(rows, ignore_conflicts=True)


def announce_change(job: Job) -> None:
    """Tell pages and lists, once the transaction has committed. `job` carries the new state and revision."""
    announce(f"job:{job.id}", revision=job.revision, state=str(job.state))
    announce(f"team:{job.team_id}", job=str(job.id), state=str(job.state))
