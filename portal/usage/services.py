"""The verbs of usage: opening, closing and freezing intervals. OCCUPIED.md says what is counted."""

import logging
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from functools import cached_property

from django.db import transaction
from django.db.models import Q

from portal.clusters.models import ResourceFlavor
from portal.clusters.specs import AttemptFacts, PodFacts
from portal.core import bus, leases
from portal.core.clock import now
from portal.jobs.models import Job
from portal.usage.models import EndSource, Interval
from portal.usage.policy import CPU, MEMORY, End, end_of, holdings, start_of, whole

logger = logging.getLogger(__name__)

# How long a pod may be missing from what the cluster says before it counts as vanished.
VANISHED_AFTER = timedelta(minutes=5)


def record(facts: AttemptFacts, *, fence: leases.Fence | None = None) -> None:
    """Open and close the intervals of an attempt's pods. Repeated and older facts change nothing.

    One interval per pod and resource, from the pod's binding to a node until its last container ended. Facts about a
    job that does not exist here are passed over. Raises `leases.FencedOff`.
    """
    if not facts.pods and not facts.job_gone:
        # Nothing of it has held anything yet, and nothing is known to be gone.
        return
    with transaction.atomic():
        leases.check(fence)
        known: dict[str, list[Interval]] = {}
        for interval in Interval.objects.filter(job_id=facts.job_id, attempt_number=facts.attempt):
            known.setdefault(interval.pod_uid, []).append(interval)
        flavors = _Flavors(facts)
        if not known and flavors.job is None:
            logger.warning("usage: job %s of %s/%s does not exist", facts.job_id, facts.namespace, facts.name)
            return
        changed = False
        for pod in facts.pods:
            rows = known.get(pod.uid)
            if rows is None:
                changed |= _open(facts, pod, flavors)
            else:
                changed |= _update(rows, pod, flavors)
        for uid in _vanished_unseen(facts, known) & known.keys():
            for row in known[uid]:
                if row.ended_at is None:
                    changed |= _close_unseen(row)
        if changed:
            bus.announce(f"job:{facts.job_id}", kind="cost")


def reconcile(*, present: Mapping[tuple[str, int], Collection[str]], fence: leases.Fence | None = None) -> int:
    """Note which pods still exist, and close what vanished while nobody was looking; the number of those.

    `present`: (job id, attempt) -> uids of its pods, for every attempt of which the cluster has told everything.
    """
    moment = now()
    closed = 0
    with transaction.atomic():
        leases.check(fence)
        alive = []
        for row in Interval.objects.filter(ended_at__isnull=True):
            uids = present.get((str(row.job_id), row.attempt_number))
            if uids is None:
                continue
            if row.pod_uid in uids:
                alive.append(row.pk)
            elif row.seen_at < moment - VANISHED_AFTER:
                closed += _close_unseen(row)
        Interval.objects.filter(pk__in=alive).update(seen_at=moment)
    return closed


def freeze(*, interval_ids: Collection[int]) -> bool:
    """Make closed intervals final, inside the transaction of whoever counts with them.

    False if one of them is frozen already or still open: then the transaction must be given up, for somebody else was
    faster.
    """
    rows = Interval.objects.filter(pk__in=interval_ids, ended_at__isnull=False, frozen_at__isnull=True)
    return rows.update(frozen_at=now()) == len(interval_ids)


class _Flavors:
    """Which flavor, and so which GPU model, each resource of an attempt was given. Two queries at most, when asked."""

    def __init__(self, facts: AttemptFacts) -> None:
        self._facts = facts
        assigned = facts.workload.flavors if facts.workload is not None else {}
        self._assigned = dict(assigned)

    @cached_property
    def job(self) -> Job | None:
        """The job with what it asked for, if it exists here."""
        return Job.objects.filter(pk=self._facts.job_id).only("id", "team_id", "gpu_model", "gpu_resource").first()

    @cached_property
    def _by_name(self) -> dict[str, ResourceFlavor]:
        names = {name for resource, name in self._assigned.items() if resource not in {CPU, MEMORY}}
        if not names:
            return {}
        found = ResourceFlavor.objects.filter(cluster__name=self._facts.cluster, name__in=names)
        return {flavor.name: flavor for flavor in found}

    @property
    def gpu_resources(self) -> set[str]:
        """The names under which GPUs may stand in a pod's requests."""
        asked = self.job.gpu_resource if self.job is not None else ""
        return {asked, *(flavor.gpu_resource for flavor in self._by_name.values())} - {""}

    def of(self, resource: str) -> str:
        return self._assigned.get(resource, "")

    def gpu_model(self, resource: str) -> str:
        """The model behind the flavor, or the one that was asked for; "" for cores and memory."""
        if resource in {CPU, MEMORY}:
            return ""
        flavor = self._by_name.get(self.of(resource))
        asked = self.job.gpu_model if self.job is not None else ""
        return (flavor.gpu_model if flavor is not None else "") or asked


def _open(facts: AttemptFacts, pod: PodFacts, flavors: _Flavors) -> bool:
    start, job = start_of(pod), flavors.job
    if start is None or job is None:
        return False
    end = _not_before(start, end_of(pod), pod.name)
    rows = [
        Interval(
            job=job,
            team_id=job.team_id,
            attempt_number=facts.attempt,
            pod_uid=pod.uid,
            pod_name=pod.name,
            node=pod.node,
            resource=resource,
            units=units,
            flavor=flavors.of(resource),
            gpu_model=flavors.gpu_model(resource),
            started_at=start,
            ended_at=end.at if end is not None else None,
            end_source=end.source if end is not None else "",
            estimated=end is not None and end.estimated,
            seen_at=now(),
        )
        for resource, units in holdings(pod.requests, flavors.gpu_resources).items()
    ]
    # Two watchers in the moment of a change of hands: the row of the first stands.
    Interval.objects.bulk_create(rows, ignore_conflicts=True)
    return bool(rows)


def _update(rows: list[Interval], pod: PodFacts, flavors: _Flavors) -> bool:
    changed = False
    ends: dict[End, list[Interval]] = {}
    for row in rows:
        given = flavors.of(row.resource)
        if given and not row.flavor:
            # The pod was seen before its Workload.
            late = {"flavor": given, "gpu_model": flavors.gpu_model(row.resource)}
            changed |= bool(Interval.objects.filter(pk=row.pk, frozen_at__isnull=True, flavor="").update(**late))
        end = _not_before(row.started_at, end_of(pod), pod.name)
        if end is not None and (row.ended_at is None or (row.estimated and not end.estimated)):
            ends.setdefault(end, []).append(row)
    for end, ended in ends.items():
        changed |= _close(ended, end)
    return changed


def _vanished_unseen(facts: AttemptFacts, known: Collection[str]) -> set[str]:
    """Pods that are gone, and of which nobody can say when."""
    present = {pod.uid for pod in facts.pods}
    gone = {pod.uid for pod in facts.pods if pod.gone and pod.gone_at is None}
    return gone | (set(known) - present if facts.job_gone else set())


def _close(ended: Collection[Interval], end: End) -> bool:
    """Each once; only an estimated end gives way to a better one, and only until somebody counts with it."""
    may_change = Q(ended_at__isnull=True)
    if not end.estimated:
        may_change |= Q(estimated=True)
    rows = Interval.objects.filter(may_change, pk__in=[row.pk for row in ended], frozen_at__isnull=True)
    return bool(rows.update(ended_at=end.at, end_source=end.source, estimated=end.estimated))


def _close_unseen(row: Interval) -> bool:
    """Nobody saw the pod go: it ends when it was last known to be there, and says that this is a guess."""
    logger.warning("usage: pod %s vanished unseen; closed at the last time it was known", row.pod_name)
    return _close([row], End(max(row.started_at, whole(row.seen_at)), EndSource.INFERRED, True))


def _not_before(start: datetime, end: End | None, pod: str) -> End | None:
    if end is None or end.at >= start:
        return end
    logger.warning("usage: pod %s ended at %s before it began at %s: quarantined as 0 s", pod, end.at, start)
    return End(start, end.source, True)
