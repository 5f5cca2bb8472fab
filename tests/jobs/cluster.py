"""A cluster that is not one: a double of the gateway's protocol that keeps its objects in memory.

It is as idempotent as the real ones (a name exists once; ours is adopted by digest), and it can be told to break before
or after it has done what was asked.
"""

import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from portal.clusters.specs import (
    AttemptFacts,
    ContainerRef,
    Created,
    JobSpec,
    NameTaken,
    ObjectRef,
    PassingError,
    QueueSnapshot,
    SpaceMissing,
    TeamSpace,
)

DAWN = datetime(2026, 11, 19, 9, 0, tzinfo=UTC)


class Killed(BaseException):
    """The process is killed here: like SystemExit, nothing catches it on the way."""


@dataclass
class Thing:
    """An object as the cluster has it."""

    spec: JobSpec
    uid: str
    created_at: datetime
    secrets: dict[str, str]
    deleting: bool = False


Fault = Callable[[], None]


@dataclass
class ClusterDouble:
    """`before` and `after` are called, once each, at the next call of a verb, before and after it took effect."""

    things: dict[str, Thing] = field(default_factory=dict)
    spaces: dict[str, TeamSpace] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)
    before: dict[str, list[Fault]] = field(default_factory=dict)
    after: dict[str, list[Fault]] = field(default_factory=dict)
    # Seconds that each call takes, as a network would.
    latency: float = 0.0
    # How often `delete` still finds something, as pods take their time.
    lingering: int = 0
    snapshot: QueueSnapshot = field(default_factory=lambda: QueueSnapshot((), ()))
    calls: list[str] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    needs_space: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fail(self, verb: str, error: BaseException, *, after: bool = False, times: int = 1) -> None:
        """The next calls of a verb break, before anything happened or after it took effect."""

        def fault() -> None:
            raise error

        (self.after if after else self.before).setdefault(verb, []).extend([fault] * times)

    # --- the protocol ----------------------------------------------------------------------------------------------

    def provision(self, space: TeamSpace) -> None:
        with self._step("provision"):
            self.spaces[space.namespace] = space

    def create(self, spec: JobSpec, secrets: Mapping[str, str]) -> Created:
        with self._step("create"):
            if self.needs_space and spec.namespace not in self.spaces:
                raise SpaceMissing(f"namespace {spec.namespace} not found")
            found = self.things.get(spec.name)
            if found is not None:
                if found.spec.digest != spec.digest:
                    raise NameTaken("AlreadyExists", f"{spec.name} is somebody else's")
                return Created(found.uid, found.created_at, adopted=True)
            self.made[spec.name] += 1
            uid = f"uid-{spec.name}-{self.made[spec.name]}"
            created_at = DAWN + timedelta(seconds=sum(self.made.values()))
            self.things[spec.name] = Thing(spec, uid, created_at, dict(secrets))
            return Created(uid, created_at)

    def delete(self, ref: ObjectRef) -> bool:
        with self._step("delete"):
            found = self.things.get(ref.name)
            if found is None or (ref.uid and ref.uid != found.uid):
                return True
            found.deleting = True
            if self.lingering:
                self.lingering -= 1
                return False
            del self.things[ref.name]
            return True

    def manifests(self, spec: JobSpec) -> list[dict[str, Any]]:
        return [{"kind": "Job", "metadata": {"name": spec.name, "namespace": spec.namespace}, "digest": spec.digest}]

    def read_queues(self) -> QueueSnapshot:
        return self.snapshot

    def write_queues(self, snapshot: QueueSnapshot) -> None:
        with self._step("write_queues"):
            self.snapshot = snapshot

    async def observe(self) -> AsyncIterator[AttemptFacts]:
        return
        yield

    def expect(self, refs: Mapping[str, tuple[str, int]]) -> None:
        return None

    async def log_head(self, ref: ContainerRef) -> bytes | None:
        return None

    async def read_log(self, ref: ContainerRef, *, since: datetime | None, follow: bool) -> AsyncIterator[bytes]:
        return
        yield b""

    # --- inside ----------------------------------------------------------------------------------------------------

    def _step(self, verb: str) -> "_Step":
        return _Step(self, verb)


@dataclass
class _Step:
    cluster: ClusterDouble
    verb: str

    def __enter__(self) -> None:
        if self.cluster.latency:
            # Stands for the network: what is measured is whether several calls are under way at once.
            time.sleep(self.cluster.latency)
        with self.cluster._lock:
            self.cluster.calls.append(self.verb)
            self.cluster.threads.add(threading.get_ident())
            _next(self.cluster.before, self.verb)
        self.cluster._lock.acquire()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.cluster._lock.release()
        if error is None:
            _next(self.cluster.after, self.verb)


def _next(faults: dict[str, list[Fault]], verb: str) -> None:
    queue = faults.get(verb)
    if queue:
        queue.pop(0)()


def lost_answer() -> PassingError:
    """The connection broke: whether it took effect is unknown."""
    return PassingError("the connection was closed while the answer was awaited")
