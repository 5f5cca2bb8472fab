"""Facts as a cluster would tell them, in the words of a story: a Job, its Workload, its pods."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from portal.clusters.specs import AttemptFacts, Condition, ContainerFacts, JobFacts, PodFacts, WorkloadFacts

START = datetime(2026, 11, 19, 14, 0, tzinfo=UTC)


def at(seconds: int) -> datetime:
    """So many seconds into the story."""
    return START + timedelta(seconds=seconds)


def pod(uid: str = "pod-1", *, index: int = 0, created: int = 20, node: str = "h100-02", **fields: Any) -> PodFacts:
    values: dict[str, Any] = {
        "name": f"job-{uid}",
        "index": index,
        "node": node,
        "created_at": at(created),
        "scheduled_at": at(created + 1) if node else None,
        "requests": {"nvidia.com/gpu": Decimal(1), "cpu": Decimal(8), "memory": Decimal(64)},
        "containers": (ContainerFacts(name="main", reason="ContainerCreating"),) if node else (),
        **fields,
    }
    return PodFacts(uid=uid, **values)


def running(facts: PodFacts, since: int) -> PodFacts:
    container = ContainerFacts(name="main", state="running", started_at=at(since))
    return replace(facts, phase="Running", containers=(container,))


def ended(facts: PodFacts, *, since: int, until: int, code: int, **container: Any) -> PodFacts:
    values: dict[str, Any] = {"reason": "Completed" if code == 0 else "Error", **container}
    life = ContainerFacts(
        name="main", state="terminated", exit_code=code, started_at=at(since), finished_at=at(until), **values
    )
    return replace(facts, phase="Failed" if code else "Succeeded", containers=(life,))


@dataclass
class Told:
    """One attempt, as told moment by moment; each verb changes what is known and answers with the facts then."""

    name: str = "bt-0-1"
    namespace: str = "bt-vision"
    job_id: str = "0"
    cluster_queue: str = "gpu"
    now: AttemptFacts = field(init=False)

    def __post_init__(self) -> None:
        self.now = AttemptFacts(
            cluster="default", namespace=self.namespace, name=self.name, job_id=self.job_id, attempt=1
        )

    # --- verbs -------------------------------------------------------------------------------------------------------

    def created(self, second: int = 0) -> AttemptFacts:
        return self._tell(job=JobFacts(uid=f"uid-{self.name}", name=self.name, created_at=at(second)))

    def pending(self, message: str, second: int = 1, reason: str = "Pending") -> AttemptFacts:
        return self._workload(Condition("QuotaReserved", False, reason, message, at(second)))

    def admitted(self, second: int = 10, flavor: str = "h100") -> AttemptFacts:
        conditions = [
            Condition("QuotaReserved", True, "QuotaReserved", "Quota reserved in ClusterQueue gpu", at(second)),
            Condition("Admitted", True, "Admitted", "The workload is admitted", at(second)),
        ]
        if self.now.workload is not None and self._condition("Evicted") is not None:
            conditions.append(Condition("Evicted", False, "QuotaReserved", "Previously: preempted", at(second)))
        self._workload(*conditions, flavors={"nvidia.com/gpu": flavor, "cpu": flavor})
        return self._job(suspended=False, started_at=at(second))

    def preempted(self, second: int, reason: str = "Preempted") -> AttemptFacts:
        message = "Preempted to accommodate a workload (UID: 1, JobUID: 2) due to reclamation within the cohort"
        self._workload(
            Condition("Evicted", True, reason, message, at(second)),
            Condition("QuotaReserved", False, "Pending", message, at(second)),
            Condition("Admitted", False, "NoReservation", "The workload has no reservation", at(second)),
        )
        self._job(suspended=True, started_at=None)
        return self._tell(pods=tuple(replace(p, gone=True, gone_at=at(second + 5)) for p in self.now.pods))

    def pods(self, *pods: PodFacts) -> AttemptFacts:
        kept = {found.uid: found for found in self.now.pods} | {found.uid: found for found in pods}
        return self._tell(pods=tuple(kept.values()))

    def complete(self, second: int) -> AttemptFacts:
        reached = Condition(
            "Complete", True, "CompletionsReached", "Reached expected number of succeeded pods", at(second)
        )
        return self._job(conditions=(reached,), completed_at=at(second), succeeded=1)

    def failed(self, second: int, reason: str = "BackoffLimitExceeded", message: str = "") -> AttemptFacts:
        words = message or "Job has reached the specified backoff limit"
        return self._job(conditions=(Condition("Failed", True, reason, words, at(second)),), failed=1)

    def failing(self, second: int) -> AttemptFacts:
        return self._job(conditions=(Condition("FailureTarget", True, "BackoffLimitExceeded", "", at(second)),))

    def gone(self, second: int) -> AttemptFacts:
        return self._tell(job_gone=True, gone_at=at(second))

    def deleting(self) -> AttemptFacts:
        return self._job(deleting=True)

    # --- inside ----------------------------------------------------------------------------------------------------

    def _tell(self, **fields: Any) -> AttemptFacts:
        self.now = replace(self.now, **fields)
        return self.now

    def _job(self, **fields: Any) -> AttemptFacts:
        assert self.now.job is not None
        return self._tell(job=replace(self.now.job, **fields))

    def _workload(self, *conditions: Condition, **fields: Any) -> AttemptFacts:
        known = self.now.workload or WorkloadFacts(name=f"job-{self.name}", cluster_queue=self.cluster_queue)
        kept = {found.type: found for found in known.conditions} | {found.type: found for found in conditions}
        return self._tell(workload=replace(known, conditions=tuple(kept.values()), **fields))

    def _condition(self, kind: str) -> Condition | None:
        workload = self.now.workload
        return next((found for found in workload.conditions if found.type == kind), None) if workload else None
