"""Taking in what the cluster says."""

from django.db import transaction

from portal.clusters.specs import AttemptFacts
from portal.core import leases
from portal.core.clock import now
from portal.core.errors import Missing
from portal.core.leases import Fence
from portal.jobs import policy
from portal.jobs.services.changes import Change, apply, attempts_with_terms, pods_of, snapshot_of, terms_of

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
    if attempt is None or str(attempt.job_id) != facts.job_id or attempt.namespace != facts.namespace:
        raise Missing(f"{facts.namespace}/{facts.name} is marked as ours, but there is no such job.")
    moment = now()
    before = snapshot_of(attempt, pods_of(attempt))
    reduction = policy.reduce(before, facts, terms_of(attempt), seen_at=moment)
    return apply(Change(attempt=attempt, before=before, reduction=reduction, moment=moment))
