"""What is known of an attempt and its pods: the reducer's input and output, free of the database."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from portal.jobs.models import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What was asked for, as far as sentences about its end need it. Memory per run; the limit of the whole job."""

    runs: int = 1
    memory_mib: int = 0
    time_limit_seconds: int | None = None
    gpu_resource: str = ""
    cancelled_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Why: a stable code, a sentence for people, and the cluster's own words."""

    reason_code: str = ""
    reason: str = ""
    cluster_reason: str = ""
    cluster_message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSnapshot:
    """A pod as stored; the names are the columns of `models.Pod`."""

    uid: str
    name: str
    index: int = 0
    phase: str = ""
    node: str = ""
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    reason_code: str = ""
    reason: str = ""
    cluster_reason: str = ""
    cluster_message: str = ""
    gone: bool = False
    past: bool = False

    @property
    def is_over(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def words(self) -> Words:
        return Words(
            reason_code=self.reason_code,
            reason=self.reason,
            cluster_reason=self.cluster_reason,
            cluster_message=self.cluster_message,
        )

    def saying(self, words: Words) -> Self:
        """The same with other words."""
        return replace(
            self,
            reason_code=words.reason_code,
            reason=words.reason,
            cluster_reason=words.cluster_reason,
            cluster_message=words.cluster_message,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSnapshot:
    """An attempt as stored; the names are the columns of `models.Attempt`. `pods` are keyed by uid."""

    state: State = State.SUBMITTED
    reason_code: str = ""
    reason: str = ""
    cluster_reason: str = ""
    cluster_message: str = ""
    object_uid: str = ""
    flavor: str = ""
    nodes: tuple[str, ...] = ()
    exit_code: int | None = None
    created_at: datetime | None = None
    admitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    requeued_at: datetime | None = None
    withdrawn_at: datetime | None = None
    pods: Mapping[str, PodSnapshot] = field(default_factory=dict)

    @property
    def live(self) -> tuple[PodSnapshot, ...]:
        """The pods of the present stay in the cluster, by index."""
        return tuple(sorted((pod for pod in self.pods.values() if not pod.past), key=lambda pod: (pod.index, pod.uid)))

    def saying(self, words: Words) -> Self:
        """The same with other words."""
        return replace(
            self,
            reason_code=words.reason_code,
            reason=words.reason,
            cluster_reason=words.cluster_reason,
            cluster_message=words.cluster_message,
        )


@dataclass(frozen=True, slots=True)
class Happening:
    """Something worth an event. `key` names it among all of its attempt, so that seeing it again adds nothing."""

    at: datetime
    source: str
    kind: str
    message: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """What facts make of an attempt. `withdraw`: its end is decided, but its object is still there and must go."""

    after: AttemptSnapshot
    happenings: tuple[Happening, ...] = ()
    withdraw: bool = False
