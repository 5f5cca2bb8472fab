"""What is due, claimed; and the one call to the cluster that each needs. Claims are rows, calls hold no transaction."""

import logging
import time
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from uuid import UUID, uuid4

from django.conf import settings
from django.db.models import F, Q, QuerySet, prefetch_related_objects

from portal.clusters.gateway import Backend, backend_of
from portal.clusters.models import Cluster
from portal.clusters.specs import (
    ClusterError,
    Created,
    JobSpec,
    ObjectRef,
    PassingError,
    PermanentError,
)
from portal.core.clock import now
from portal.core.secrets import SecretUnreadable, open_sealed
from portal.jobs.models import TERMINAL, Attempt, Job, State
from portal.jobs.policy import IN_CLUSTER
from portal.jobs.policy.specs_of import spec_of_job
from portal.quotas import services as quotas
from portal.quotas.models import LocalQueue

logger = logging.getLogger(__name__)

# Longer than every call of an errand together: making the team's place and the object, 10 s each at most.
LEASE = timedelta(seconds=60)
# Due for so long, a row is waited for by a queue of hints; whoever comes takes it along.
LATE = timedelta(seconds=1)
# Others may be faster with everything that was found; then there is more to find.
LOOKS = 5
# A call that would begin with less of the lease left is not begun, so that none outlives its claim.
LEAST_LEASE_SECONDS = 25.0


class NoPlace(PassingError):
    """The cluster refuses to make the team's namespace or LocalQueue."""


@dataclass(frozen=True, slots=True)
class Made:
    """The object is there."""

    created: Created


@dataclass(frozen=True, slots=True)
class Deleted:
    """Deletion was asked for; `done` when nothing of the object is left."""

    done: bool


@dataclass(frozen=True, slots=True)
class Trouble:
    """The cluster did not do it. `error` says whether it may later."""

    error: ClusterError


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The claim was too old to begin."""


class Wish(Enum):
    """What the cluster shall have of an attempt."""

    OBJECT = "object"
    NOTHING = "nothing"


Outcome = Made | Deleted | Trouble | NotBegun


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One call to make, with everything it needs, so that a thread can make it without the database.

    `spec` is None when the object shall go.
    """

    attempt_id: int
    token: UUID
    backend: Backend | None
    ref: ObjectRef
    spec: JobSpec | None
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    queue: LocalQueue
    # Known before any call: there is no way to the cluster, the team's place could not be made, or a secret cannot be
    # opened.
    hindered: ClusterError | None = None
    # time.monotonic() until which the claim is good.
    good_until: float


def claim(*, limit: int, hinted: int | None = None) -> list[Errand]:
    """Claim up to `limit` due attempts, the longest due first; three to five queries.

    `hinted` is the attempt that a hint speaks of: it is claimed if it is due, and with it what is late already.
    """
    token = uuid4()
    good_until = time.monotonic() + LEASE.total_seconds()
    if not _mark(token, limit, hinted):
        return []
    claimed = (
        Attempt.objects.filter(claim_token=token)
        .select_related("job__team", "job__queue__cluster_queue__cluster")
        .order_by("due_at", "pk")
    )
    wanted = [(attempt, _wish(attempt)) for attempt in claimed]
    prefetch_related_objects(
        [row.job for row, wish in wanted if wish is Wish.OBJECT and _has_secrets(row.job)], "secrets"
    )
    _let_go([attempt.pk for attempt, wish in wanted if wish is None], token)
    return [_errand(attempt, token, good_until, wish) for attempt, wish in wanted if wish is not None]


def prepare(errands: list[Errand]) -> list[Errand]:
    """Have the places made that are still missing: database and network in turn, so in the calling thread only."""
    known: dict[int, ClusterError | None] = {}
    prepared = []
    for errand in errands:
        queue = errand.queue
        if errand.spec is None or errand.hindered is not None or queue.provisioned_at is not None:
            prepared.append(errand)
            continue
        if queue.pk not in known:
            known[queue.pk] = _provision(queue)
        prepared.append(replace(errand, hindered=known[queue.pk]))
    return prepared


def run(errand: Errand) -> Outcome:
    """Make the call. Touches no database; safe in any thread. Faults of the program itself count as passing."""
    if errand.hindered is not None or errand.backend is None:
        return Trouble(errand.hindered or PassingError("There is no way to the cluster."))
    if errand.good_until - time.monotonic() < LEAST_LEASE_SECONDS:
        return NotBegun()
    try:
        if errand.spec is None:
            return Deleted(errand.backend.delete(errand.ref))
        return Made(errand.backend.create(errand.spec, errand.secrets))
    except ClusterError as error:
        return Trouble(error)
    except Exception as error:
        # Whatever it was, the job must not hang on it for ever, nor end by it.
        logger.exception("%s: the call to the cluster broke", errand.ref.name)
        return Trouble(PassingError(f"{type(error).__name__} inside Beamtime; see its log"))


def _mark(token: UUID, limit: int, hinted: int | None) -> bool:
    """Put the token on due rows; whether there were any.

    The guard is one conditional UPDATE: whoever is second finds the row claimed.
    """
    for _ in range(LOOKS):
        moment = now()
        due = _free(Attempt.objects.filter(due_at__lte=moment))
        # Objects of another cluster are not ours to make: it is reached with other credentials.
        candidates = due.filter(job__queue__cluster_queue__cluster__name=settings.BEAMTIME_CLUSTER_NAME)
        if hinted is not None:
            candidates = candidates.filter(Q(pk=hinted) | Q(due_at__lt=moment - LATE))
        ids = list(candidates.order_by("due_at", "pk").values_list("pk", flat=True)[:limit])
        if not ids:
            return False
        if due.filter(pk__in=ids).update(claim_token=token, claimed_until=moment + LEASE, tries=F("tries") + 1):
            return True
    return False


def _wish(attempt: Attempt) -> Wish | None:
    """What the cluster shall have of an attempt; None if that is what it has.

    A state may have moved since the row was claimed: what the watcher saw meanwhile needs no making, and must on no
    account be deleted.
    """
    if attempt.state == State.SUBMITTED:
        return Wish.OBJECT
    if attempt.state == State.CANCELLING or attempt.state in TERMINAL:
        return Wish.NOTHING
    return None


def _has_secrets(job: Job) -> bool:
    return bool(job.work.get("secret_env"))


def _let_go(ids: list[int], token: UUID) -> None:
    """Nothing to do for these. What became cancelling in this moment stays due."""
    if ids:
        claimed = Attempt.objects.filter(pk__in=ids, claim_token=token)
        claimed.filter(state__in=IN_CLUSTER - {State.CANCELLING}).update(due_at=None)
        claimed.update(claim_token=None, claimed_until=None)


def _free(attempts: QuerySet[Attempt]) -> QuerySet[Attempt]:
    return attempts.filter(Q(claimed_until=None) | Q(claimed_until__lt=now()))


def _errand(attempt: Attempt, token: UUID, good_until: float, wish: Wish) -> Errand:
    job = attempt.job
    cluster = job.queue.cluster_queue.cluster
    backend, hindered = _backend(cluster)
    secrets: dict[str, str] = {}
    if wish is Wish.OBJECT and _has_secrets(job):
        try:
            secrets = {secret.name: open_sealed(bytes(secret.sealed)) for secret in job.secrets.all()}
        except SecretUnreadable:
            hindered = PermanentError(
                "SecretUnreadable", "A secret of this job was sealed with a key that is no longer there."
            )
    return Errand(
        attempt_id=attempt.pk,
        token=token,
        backend=backend,
        ref=ObjectRef(
            cluster=cluster.name, namespace=attempt.namespace, name=attempt.object_name, uid=attempt.object_uid
        ),
        spec=spec_of_job(job, attempt.number) if wish is Wish.OBJECT else None,
        secrets=secrets,
        queue=job.queue,
        hindered=hindered,
        good_until=good_until,
    )


def _provision(queue: LocalQueue) -> ClusterError | None:
    try:
        quotas.ensure_provisioned(queue)
    except PermanentError as error:
        # For an operator to mend, and the job is as good as before: it waits.
        return NoPlace(str(error))
    except ClusterError as error:
        return error
    except Exception as error:
        logger.exception("the place of team %s could not be made", queue.team.slug)
        return PassingError(f"{type(error).__name__} inside Beamtime; see its log")
    return None


def _backend(cluster: Cluster) -> tuple[Backend | None, ClusterError | None]:
    """The way to the cluster; settings that lead nowhere are an operator's to mend, and jobs wait for it."""
    try:
        return backend_of(cluster), None
    except Exception as error:
        logger.exception("cluster %s cannot be spoken to", cluster.name)
        return None, PassingError(f"The settings lead to no cluster: {error}")
