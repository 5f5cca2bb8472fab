"""What the local backend remembers of a job between two looks: plain data, with a way into JSON and back.

Times in the files are whole seconds since 1970 (as Kubernetes keeps them), but for `created_ns`, by which queues are
ordered.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from portal.clusters.specs import JobSpec, WorkSpec

CONTAINER = "main"


def moment(seconds: int | None) -> datetime | None:
    """An aware datetime from whole seconds."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


@dataclass(slots=True)
class Mark:
    """A condition as kept: `at` moves only when `status` changes, as in Kubernetes."""

    status: bool
    reason: str
    message: str
    at: int


@dataclass(frozen=True, slots=True)
class PodStatus:
    """A pod's status file, read."""

    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    container: Mapping[str, Any] = field(default_factory=dict)
    # (pid, start) of the runner and of the command's first process; see runner.processes.
    runner: tuple[int, str] | None = None
    leader: tuple[int, str] | None = None

    @property
    def over(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def finished_at(self) -> int | None:
        value = self.container.get("finished_at")
        return value if isinstance(value, int) else None

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Self:
        """From `status.json`; a pod without one is waiting for its runner."""
        if data is None:
            return cls()
        runner, leader = data.get("runner"), data.get("leader")
        return cls(
            phase=data["phase"],
            reason=data["reason"],
            message=data["message"],
            container=data["container"],
            runner=(int(runner[0]), str(runner[1])) if runner else None,
            leader=(int(leader[0]), str(leader[1])) if leader else None,
        )


@dataclass(slots=True)
class PodRecord:
    """One pod of a job. `scheduled_at` is set once it has its devices."""

    uid: str
    name: str
    index: int
    created_at: int
    scheduled_at: int | None = None
    devices: list[str] = field(default_factory=list)
    # The last status seen; lives in the pod's own folder, not in the job's file.
    status: PodStatus = PodStatus()
    # What `status` was read from: the file's (inode, time of change, size).
    seen: tuple[int, int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        names = ("uid", "name", "index", "created_at", "scheduled_at", "devices")
        return {name: getattr(self, name) for name in names}


@dataclass(slots=True)
class JobRecord:
    """One job: what was asked for (never changes) and what became of it."""

    key: str
    uid: str
    created_ns: int
    digest: str
    spec: JobSpec
    # Resource name -> ResourceFlavor, once quota is reserved.
    flavors: dict[str, str] = field(default_factory=dict)
    # Conditions of the Workload and of the Job, by type.
    workload: dict[str, Mark] = field(default_factory=dict)
    conditions: dict[str, Mark] = field(default_factory=dict)
    started_at: int | None = None
    completed_at: int | None = None
    deleting_at: int | None = None
    pods: list[PodRecord] = field(default_factory=list)

    @property
    def created_at(self) -> int:
        return self.created_ns // 1_000_000_000

    @property
    def admitted(self) -> bool:
        return self.started_at is not None

    @property
    def over(self) -> bool:
        """The Job is Complete or Failed."""
        return bool(self.conditions)

    @property
    def parallelism(self) -> int:
        """How many pods may run at once."""
        return self.spec.work.at_once

    @property
    def succeeded(self) -> int:
        return sum(pod.status.phase == "Succeeded" for pod in self.pods)

    @property
    def failed(self) -> int:
        return sum(pod.status.phase == "Failed" for pod in self.pods)

    @property
    def active(self) -> list[PodRecord]:
        return [pod for pod in self.pods if not pod.status.over]

    @property
    def active_need(self) -> int:
        """How many pods' worth of quota the job holds: what has ended is given back, as Kueue's reclaimablePods."""
        if self.deleting_at is not None:
            return len(self.active)
        return min(self.parallelism, self.spec.work.runs - self.succeeded - self.failed) if self.admitted else 0

    def state(self) -> dict[str, Any]:
        """What changes, for the job's state file."""
        return {
            "flavors": self.flavors,
            "workload": {name: asdict(mark) for name, mark in self.workload.items()},
            "conditions": {name: asdict(mark) for name, mark in self.conditions.items()},
            "started_at": self.started_at,
            "completed_at": self.completed_at,
            "pods": [pod.to_json() for pod in self.pods],
        }

    def take_state(self, data: Mapping[str, Any]) -> None:
        """The reverse of `state`."""
        self.flavors = dict(data["flavors"])
        self.workload = {name: Mark(**mark) for name, mark in data["workload"].items()}
        self.conditions = {name: Mark(**mark) for name, mark in data["conditions"].items()}
        self.started_at, self.completed_at = data["started_at"], data["completed_at"]
        self.pods = [PodRecord(**pod) for pod in data["pods"]]


def note(marks: dict[str, Mark], name: str, *, status: bool, reason: str, message: str, at: int) -> None:
    """Set a condition; the time of a condition that keeps its status stays."""
    old = marks.get(name)
    kept = old.at if old is not None and old.status == status else at
    marks[name] = Mark(status=status, reason=reason, message=message, at=kept)


def spec_from_json(data: Mapping[str, Any]) -> JobSpec:
    """A JobSpec again from `dataclasses.asdict`, after a trip through JSON."""
    values = dict(data)
    values["work"] = WorkSpec.from_json(values["work"])
    values["node_selector"] = tuple((name, value) for name, value in values["node_selector"])
    return JobSpec(**values)
