"""Writing down what became of an attempt: the only place that moves attempt and job on.

An attempt's `revision` is the guard: whoever read an older one changes nothing and must look again. The job mirrors
its attempt inside the same transaction, behind the lock that the attempt's UPDATE holds.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid5

from django.db import transaction
from django.db.models import F, QuerySet

from portal.clusters.models import ResourceFlavor
from portal.core import metrics
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
            work_flavor=F("job__work__flavor"),
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


def pods_of(attempt: Attempt) -> list[PodSnapshot]:
    """The pods that are known of an attempt. One query."""
    return [PodSnapshot(**row) for row in attempt.pods.values(*_POD_FIELDS)]


def pods_of_all(attempts: Iterable[int]) -> Mapping[int, Sequence[PodSnapshot]]:
    """The same of several, by the attempt's key. One query."""
    found: dict[int, list[PodSnapshot]] = defaultdict(list)
    for row in Pod.objects.filter(attempt__in=list(attempts)).values("attempt_id", *_POD_FIELDS):
        found[row.pop("attempt_id")].append(PodSnapshot(**row))
    return found


def snapshot_of(attempt: Attempt, pods: Iterable[PodSnapshot]) -> AttemptSnapshot:
    """The attempt as the reducer takes it."""
    values = {name: getattr(attempt, name) for name in _OWN_FIELDS}
    return AttemptSnapshot(
        **values | {"state": State(attempt.state), "nodes": tuple(attempt.nodes)},
        pods={pod.uid: pod for pod in pods},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a reduction makes of one attempt, to be stored.

    `columns` are columns of the attempt beside those of the snapshot; `guard` names more of them that must still be
    what they were, such as the claim.
    """

    attempt: Attempt
    before: AttemptSnapshot
    reduction: Reduction
    moment: datetime
    guard: Mapping[str, object] = field(default_factory=dict)
    columns: Mapping[str, object] = field(default_factory=dict)

    @property
    def after(self) -> AttemptSnapshot:
        return self.reduction.after

    @property
    def changed(self) -> dict[str, Any]:
        """Columns of the attempt with their new values."""
        return _changed(self.before, self.after)

    @property
    def due(self) -> dict[str, Any]:
        """What is left to do in the cluster after a change of state; cancelling stays due until it is confirmed."""
        before, after = self.before.state, self.after.state
        if after is before:
            return {}
        if after in TERMINAL:
            return {"due_at": self.moment if self.reduction.withdraw else None}
        return {"due_at": None} if before is State.SUBMITTED and after is not State.CANCELLING else {}


def apply(change: Change) -> bool:
    """Store a change. False, and nothing written, if somebody else changed the attempt first.

    Inside the caller's transaction. Facts that were known already write nothing.
    """
    return not apply_all([change])


def apply_all(changes: Iterable[Change]) -> list[Change]:
    """Store changes of different attempts; the answer is those that somebody else was faster with.

    One UPDATE for each attempt, which is its guard; everything that hangs on it goes together, in a few statements.
    Whoever changes several locks them in the same order, so that nobody waits in a circle.
    """
    stored, late = [], []
    for change in sorted(changes, key=lambda change: change.attempt.pk):
        changed, due = change.changed, change.due
        columns = {**due, **change.columns}
        row = Attempt.objects.filter(pk=change.attempt.pk, revision=change.attempt.revision, **change.guard)
        if not changed and change.before.pods == change.after.pods:
            if columns and not row.update(**columns):
                late.append(change)
        elif row.update(revision=F("revision") + 1, **changed, **columns):
            stored.append((change, changed))
        else:
            late.append(change)
    _store_pods([change for change, _ in stored])
    Event.objects.bulk_create([row for change, _ in stored for row in _event_rows(change)], ignore_conflicts=True)
    _mirror(stored)
    for change, _ in stored:
        if change.due.get("due_at") is not None:
            nudge("jobs.dispatch", change.attempt.pk)
        announce_change(change.attempt.job)
    return late


def _changed(before: AttemptSnapshot, after: AttemptSnapshot) -> dict[str, Any]:
    found = {name: getattr(after, name) for name in _OWN_FIELDS if getattr(after, name) != getattr(before, name)}
    return {name: _column(Attempt, name, value) for name, value in found.items()}


def _store_pods(changes: Iterable[Change]) -> None:
    rows = [
        Pod(attempt=change.attempt, **{name: _column(Pod, name, getattr(pod, name)) for name in _POD_FIELDS})
        for change in changes
        for uid, pod in change.after.pods.items()
        if change.before.pods.get(uid) != pod
    ]
    if rows:
        fields = [name for name in _POD_FIELDS if name != "uid"]
        Pod.objects.bulk_create(rows, update_conflicts=True, unique_fields=["uid"], update_fields=fields)


def _mirror(stored: Sequence[tuple[Change, dict[str, Any]]]) -> None:
    """The jobs repeat what changed of their attempts; equal changes go together. Secrets end with their job."""
    alike: dict[tuple[tuple[str, Any], ...], list[Job]] = defaultdict(list)
    ended = []
    for change, changed in stored:
        job = change.attempt.job
        alike[tuple((name, changed[name]) for name in _MIRRORED if name in changed)].append(job)
        if change.after.state in TERMINAL and change.before.state not in TERMINAL:
            ended.append(job)
    for seen, jobs in alike.items():
        Job.objects.filter(pk__in=[job.pk for job in jobs]).update(revision=F("revision") + 1, **dict(seen))
        for job in jobs:
            for name, value in seen:
                setattr(job, name, value)
            job.revision += 1
    if ended:
        JobSecret.objects.filter(job_id__in=[job.pk for job in ended]).delete()
        transaction.on_commit(partial(_count_ended, [str(job.state) for job in ended]), robust=True)
    _name_models(stored)


def _count_ended(states: Iterable[str]) -> None:
    for state in states:
        metrics.JOBS_ENDED.labels(state).inc()


def _name_models(stored: Iterable[tuple[Change, dict[str, Any]]]) -> None:
    """A job that left the GPU model open names the one that it was given, each time that it is given one."""
    for change, changed in stored:
        row: Any = change.attempt
        if changed.get("flavor") and not row.work_flavor:
            given = ResourceFlavor.objects.filter(
                name=changed["flavor"], cluster__cluster_queues__local_queues=row.job.queue_id
            )
            model = given.exclude(gpu_model="").values_list("gpu_model", flat=True).first()
            if model:
                Job.objects.filter(pk=row.job_id).update(gpu_model=model)


def _column(model: type[Attempt] | type[Pod], name: str, value: Any) -> Any:
    """A value as the column takes it: no longer than it is, without the NUL that PostgreSQL refuses in a text."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str) and not isinstance(value, State):
        return value.replace("\0", "")[: getattr(model._meta.get_field(name), "max_length", None)]
    return value


def record_event(job: Job, attempt: Attempt, *, at: datetime, kind: str, message: str, key: str) -> None:
    """An event of Beamtime's own doing, once."""
    row = _event_row(job, attempt, Happening(at, "beamtime", kind, message, key))
    Event.objects.bulk_create([row], ignore_conflicts=True)


def _event_rows(change: Change) -> list[Event]:
    return [_event_row(change.attempt.job, change.attempt, happening) for happening in change.reduction.happenings]


def _event_row(job: Job, attempt: Attempt, happening: Happening) -> Event:
    """An event whose key makes it one, however often it is seen."""
    return Event(
        job=job,
        attempt_number=attempt.number,
        at=happening.at,
        source=happening.source,
        kind=happening.kind,
        message=happening.message.replace("\0", ""),
        key=str(uuid5(_EVENTS, f"{attempt.object_name}/{happening.key}")),
    )


def announce_change(job: Job) -> None:
    """Tell pages and lists, once the transaction has committed. `job` carries the new state and revision."""
    announce(f"job:{job.id}", revision=job.revision, state=str(job.state))
    announce(f"team:{job.team_id}", job=str(job.id), state=str(job.state))
