"""Taking in what the cluster says."""

from collections.abc import Iterable, Sequence

from django.db import transaction

from portal.clusters.specs import AttemptFacts
from portal.core import leases
from portal.core.clock import now
from portal.core.errors import Missing
from portal.core.leases import Fence
from portal.jobs import policy
from portal.jobs.models import Attempt
from portal.jobs.policy import PodSnapshot
from portal.jobs.services.changes import (
    Change,
    apply,
    apply_all,
    attempts_with_terms,
    pods_of,
    pods_of_all,
    snapshot_of,
    terms_of,
)

# How often a write may find that another was faster, before something must be wrong.
PATIENCE = 20


def observe(facts: AttemptFacts, *, fence: Fence | None = None) -> None:
    """Apply what the cluster says about one attempt; repeated and older facts change nothing.

    `fence` proves that the caller still leads; raises `FencedOff` if not, and `Missing` for an attempt that this
    portal does not have.
    """
    for _ in range(PATIENCE):
        if _try(facts, fence):
            return
    raise RuntimeError(f"{facts.name}: its row changed {PATIENCE} times while facts were being applied")


@transaction.atomic
def _try(facts: AttemptFacts, fence: Fence | None) -> bool:
    leases.check(fence)
    attempt = attempts_with_terms().filter(object_name=facts.name).first()
    if attempt is None or not _is_about(facts, attempt):
        raise Missing(f"{facts.namespace}/{facts.name} is marked as ours, but there is no such job.")
    return apply(_change(facts, attempt, pods_of(attempt)))


@transaction.atomic
def observe_all(many: Sequence[AttemptFacts], *, fence: Fence | None = None) -> list[int]:
    """The same for different attempts, together or not at all, in as many statements as for one and an UPDATE for each
    that changes. The answer is the positions of those that must be looked at by themselves: see `observe`.
    """
    leases.check(fence)
    rows = {row.object_name: row for row in attempts_with_terms().filter(object_name__in=[each.name for each in many])}
    pods = pods_of_all(row.pk for row in rows.values())
    changes, alone = {}, []
    for position, facts in enumerate(many):
        attempt = rows.get(facts.name)
        if attempt is not None and _is_about(facts, attempt):
            changes[attempt.pk] = position, _change(facts, attempt, pods[attempt.pk])
        else:
            alone.append(position)
    late = apply_all(change for _, change in changes.values())
    return [*alone, *(changes[change.attempt.pk][0] for change in late)]


def _is_about(facts: AttemptFacts, attempt: Attempt) -> bool:
    return str(attempt.job_id) == facts.job_id and attempt.namespace == facts.namespace


def _change(facts: AttemptFacts, attempt: Attempt, pods: Iterable[PodSnapshot]) -> Change:
    moment = now()
    before = snapshot_of(attempt, pods)
    reduction = policy.reduce(before, facts, terms_of(attempt), seen_at=moment)
    return Change(attempt=attempt, before=before, reduction=reduction, moment=moment)
