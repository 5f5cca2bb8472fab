"""The only mouth that speaks to an execution backend. One protocol, two backends: `kube` and `local`."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol

from django.conf import settings

from portal.clusters.kube.backend import KubeBackend
from portal.clusters.local.backend import LocalBackend
from portal.clusters.models import BackendKind, Cluster
from portal.clusters.specs import (
    AttemptFacts,
    ContainerRef,
    Created,
    JobSpec,
    ObjectRef,
    PermanentError,
    QueueSnapshot,
    TeamSpace,
)

LOCAL_BACKEND_OFF = (
    "This cluster runs jobs as processes of the portal's own user, which is off here. "
    "Set BEAMTIME_CLUSTER_KUBECONFIG, or BEAMTIME_ALLOW_LOCAL_BACKEND=yes if everybody who can sign in may do that."
)


class Backend(Protocol):
    """What every place where jobs run can do. Synchronous calls carry time-outs of at most 10 s each."""

    def provision(self, space: TeamSpace) -> None:
        """Make the namespace and LocalQueues of a team, or bring them in step. Idempotent.

        Raises `PassingError`, `PermanentError`.
        """

    def create(self, spec: JobSpec, secrets: Mapping[str, str]) -> Created:
        """Make the attempt's object, suspended, and its Secret. Idempotent by name, uid label and digest.

        Raises `PassingError`, `PermanentError`, `NameTaken`, `SpaceMissing`.
        """

    def delete(self, ref: ObjectRef) -> bool:
        """Ask for the object to go, pods included. True when nothing of it is left, also if it never was.

        Raises `PassingError`, `PermanentError`.
        """

    def manifests(self, spec: JobSpec) -> list[dict[str, Any]]:
        """Exactly what `create` would make; secrets by name only."""

    def read_queues(self) -> QueueSnapshot:
        """ClusterQueues and ResourceFlavors as the cluster has them. Raises `PassingError`, `PermanentError`."""

    def write_queues(self, snapshot: QueueSnapshot) -> None:
        """Make the cluster's queues as given. Raises `PermanentError` where the cluster's queues are not ours."""

    def observe(self) -> AsyncIterator[AttemptFacts]:
        """Facts about every attempt of this portal: all of them first, then each change, for ever.

        Survives lost connections by itself. After the first full pass and after each relist, an attempt that was
        expected and does not exist is reported with `job_gone`.
        """

    def expect(self, refs: Mapping[str, tuple[str, int]]) -> None:
        """Tell the observer which objects should exist: "namespace/name" -> (job id, attempt)."""

    def read_log(self, ref: ContainerRef, *, since: datetime | None, follow: bool) -> AsyncIterator[bytes]:
        """Bytes of the log endpoint with time stamps: `<RFC 3339 nanoseconds> <text>\\n` per record.

        `since` is cut to whole seconds, so the whole second is sent again. Raises `LogGone`, `LineBroken` and
        `PassingError`.
        """

    async def log_head(self, ref: ContainerRef) -> bytes | None:
        """The first bytes, time stamp included, of the file that `read_log` would read from its beginning now.

        Empty while nothing stands in it; None where a log is one file for ever. Raises `LogGone`, `PassingError`.
        """


@lru_cache(maxsize=8)
def _backend(name: str, kind: str) -> Backend:
    if kind == BackendKind.LOCAL:
        if not settings.BEAMTIME_ALLOW_LOCAL_BACKEND:
            raise PermanentError("LocalBackendOff", LOCAL_BACKEND_OFF)
        return LocalBackend(root=settings.BEAMTIME_DATA_DIR / "local" / name, cluster=name)
    return KubeBackend(
        cluster=name, kubeconfig=settings.BEAMTIME_CLUSTER_KUBECONFIG, instance=settings.BEAMTIME_INSTANCE
    )


def backend_of(cluster: Cluster) -> Backend:
    """The backend of a cluster; one object per process, so that connections are kept.

    Raises `PermanentError` where the cluster is this machine and that was not allowed.
    """
    return _backend(cluster.name, cluster.backend)


def forget_backends() -> None:
    """Drop the kept backends, for tests that change the settings."""
    _backend.cache_clear()
