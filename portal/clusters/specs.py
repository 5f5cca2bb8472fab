"""What crosses the border between Beamtime and a place where jobs run: requests out, facts in.

All frozen, all plain data. Times are aware datetimes in UTC and come from the cluster's objects.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Self

# --- out: what shall run -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSpec:
    """What runs, without where: the catalog's answer to a template and its values.

    `cpu_millicores`, `memory_mib` and `gpus` are per pod. `runs` is the number of indexed pods (1 = a plain job).
    `secret_env` names environment variables whose values travel apart and are never part of this spec.
    """

    image: str
    command: tuple[str, ...]
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    secret_env: tuple[str, ...] = ()
    cpu_millicores: int = 1000
    memory_mib: int = 1024
    gpus: int = 0
    # Name of the ResourceFlavor asked for; "" leaves the choice to the queue.
    flavor: str = ""
    runs: int = 1
    # How many of the runs may be active at once; None = all.
    parallelism: int | None = None
    time_limit_seconds: int | None = None

    @property
    def at_once(self) -> int:
        """How many pods run together; Kueue admits them together, so it is their sum that takes quota."""
        return min(self.runs, self.parallelism or self.runs)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, as stored with the job."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The spec again from `to_json`, after a trip through JSON."""
        values = dict(data)
        for name in ("command", "args", "secret_env"):
            values[name] = tuple(values[name])
        values["env"] = tuple((key, value) for key, value in values["env"])
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One attempt, ready to become one object of the cluster. Its name is fixed by job and attempt."""

    cluster: str
    namespace: str
    # Valid by construction: made of ids only.
    name: str
    # LocalQueue and the ClusterQueue behind it.
    queue: str
    cluster_queue: str
    job_id: str
    attempt: int
    team: str
    submitted_by: str
    display_name: str
    work: WorkSpec
    # From the ResourceFlavor that the person chose; empty when Kueue may choose.
    node_selector: tuple[tuple[str, str], ...] = ()
    gpu_resource: str = "nvidia.com/gpu"

    @property
    def digest(self) -> str:
        """SHA-256 (hex, 40 characters) over everything that will run; the same spec has the same digest."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """Where one attempt's object is. `uid` guards a deletion against an object of the same name made later."""

    cluster: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamSpace:
    """A team's place in a cluster: its namespace, and a LocalQueue per ClusterQueue it may use."""

    cluster: str
    namespace: str
    team: str
    # (LocalQueue name, ClusterQueue name)
    queues: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Created:
    """The object is there. `adopted`: it was there already, with our uid label and the same digest."""

    uid: str
    created_at: datetime
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class FlavorQuota:
    """Nominal quota of one resource in one flavor. `resource` as Kueue names it; cpu in cores, memory in GiB."""

    flavor: str
    resource: str
    nominal: Decimal
    borrowing_limit: Decimal | None = None


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A ClusterQueue as the portal needs it."""

    name: str
    quotas: tuple[FlavorQuota, ...]
    cohort: str = ""
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class FlavorSpec:
    """A ResourceFlavor as the portal needs it."""

    name: str
    node_labels: tuple[tuple[str, str], ...] = ()
    gpu_model: str = ""
    gpu_memory_gib: int | None = None
    pretended: bool = False


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """Every flavor and ClusterQueue of a cluster at one moment."""

    flavors: tuple[FlavorSpec, ...]
    queues: tuple[QueueSpec, ...]


# --- in: what was seen -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Condition:
    """A Kubernetes condition. `status`: True, False, or None for "Unknown"."""

    type: str
    status: bool | None
    reason: str = ""
    message: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFacts:
    """One container of a pod in one life (`restart` counts lives from 0). `state`: waiting, running, terminated."""

    name: str
    restart: int = 0
    state: str = "waiting"
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """One pod. `gone`: the object is known to be deleted, and these are the last facts seen of it."""

    uid: str
    name: str
    index: int = 0
    phase: str = "Pending"
    node: str = ""
    reason: str = ""
    message: str = ""
    created_at: datetime | None = None
    # lastTransitionTime of PodScheduled=True: from then on the devices are nobody else's.
    scheduled_at: datetime | None = None
    deletion_requested_at: datetime | None = None
    gone: bool = False
    gone_at: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    containers: tuple[ContainerFacts, ...] = ()
    # Effective request: {"nvidia.com/gpu": 4, "cpu": 8, "memory": 64}; cpu in cores, memory in GiB.
    requests: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """The batch/v1 Job."""

    uid: str
    name: str
    created_at: datetime
    suspended: bool = True
    started_at: datetime | None = None
    completed_at: datetime | None = None
    deleting: bool = False
    conditions: tuple[Condition, ...] = ()
    active: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFacts:
    """Kueue's Workload of the Job. `flavors`: resource name -> ResourceFlavor, once quota is reserved."""

    name: str
    cluster_queue: str = ""
    conditions: tuple[Condition, ...] = ()
    flavors: Mapping[str, str] = field(default_factory=dict)
    active: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """Everything the cluster knows about one attempt at one moment.

    `job` is None when the object was never seen; `job_gone` when it was seen or expected and is known not to exist.
    """

    cluster: str
    namespace: str
    name: str
    job_id: str
    attempt: int
    job: JobFacts | None = None
    job_gone: bool = False
    gone_at: datetime | None = None
    workload: WorkloadFacts | None = None
    pods: tuple[PodFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRef:
    """Whose log: one container of one pod in one life."""

    cluster: str
    namespace: str
    pod: str
    pod_uid: str
    container: str
    restart: int = 0


# --- errors ------------------------------------------------------------------------------------------------------


class ClusterError(Exception):
    """The cluster did not do what was asked."""


class PassingError(ClusterError):
    """It may work later: no connection, time-out, 408, 429, 5xx. `retry_after` in seconds if the cluster said."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class LineBroken(PassingError):
    """The connection of a log broke; `silent`: it was given up because nothing came any more."""

    def __init__(self, message: str, *, silent: bool = False) -> None:
        super().__init__(message)
        self.silent = silent


class PermanentError(ClusterError):
    """It will never work as asked: the cluster refused. `reason` is Kubernetes' own word."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class NameTaken(PermanentError):
    """An object of this name exists and is not ours (other uid label or other digest)."""


class SpaceMissing(ClusterError):
    """The team's namespace or LocalQueue is not there: provision it, then try again."""


class LogGone(ClusterError):
    """The log of this container can no longer be read, or cannot be read yet (`passing`)."""

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing
