"""The `kube` backend: the gateway's protocol on top of this package."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from portal.clusters.kube import manifests
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
from portal.core.clock import now

if TYPE_CHECKING:
    from portal.clusters.kube.connection import Connection
    from portal.clusters.kube.writes import Writer


@dataclass(frozen=True, slots=True)
class _Tools:
    connection: Connection
    writer: Writer


class KubeBackend:
    """Kubernetes with Kueue, reached by a kubeconfig file or, with `kubeconfig` empty, as the pod's service account."""

    def __init__(self, *, cluster: str, kubeconfig: str, instance: str) -> None:
        self.cluster = cluster
        # When the API server last showed life to `observe`; None before it did. For health checks.
        self.last_heard: datetime | None = None
        self._kubeconfig = kubeconfig
        self._instance = instance
        self._expected: Mapping[str, tuple[str, int]] = {}
        self._lock = threading.Lock()
        self._tools: _Tools | None = None

    def provision(self, space: TeamSpace) -> None:
        self._use().writer.provision(space)

    def create(self, spec: JobSpec, secrets: Mapping[str, str]) -> Created:
        return self._use().writer.create(spec, secrets)

    def delete(self, ref: ObjectRef) -> bool:
        return self._use().writer.delete(ref)

    def manifests(self, spec: JobSpec) -> list[dict[str, Any]]:
        made = [manifests.job(spec, instance=self._instance)]
        if spec.work.secret_env:
            made.append(manifests.secret(spec, None, owner_uid=manifests.HIDDEN, instance=self._instance))
        return made

    def read_queues(self) -> QueueSnapshot:
        return self._use().writer.read_queues()

    def write_queues(self, snapshot: QueueSnapshot) -> None:
        raise PermanentError("NotOurs", "The queues of this cluster are kept in Kueue; change them there.")

    def expect(self, refs: Mapping[str, tuple[str, int]]) -> None:
        self._expected = dict(refs)

    async def observe(self) -> AsyncGenerator[AttemptFacts, None]:
        # See _use for why this import stands here.
        from portal.clusters.kube.observer import Observer  # noqa: PLC0415

        observer = Observer(
            connection=self._use().connection,
            cluster=self.cluster,
            instance=self._instance,
            expected=lambda: self._expected,
            heard=self._heard,
        )
        async with aclosing(observer.observe()) as facts:
            async for each in facts:
                yield each

    async def read_log(self, ref: ContainerRef, *, since: datetime | None, follow: bool) -> AsyncGenerator[bytes, None]:
        # See _use for why this import stands here.
        from portal.clusters.kube.logs import read_log  # noqa: PLC0415

        async with aclosing(read_log(self._use().connection, ref, since=since, follow=follow)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def log_head(self, ref: ContainerRef) -> bytes:
        # See _use for why this import stands here.
        from portal.clusters.kube.logs import log_head  # noqa: PLC0415

        return await log_head(self._use().connection, ref)

    def _heard(self) -> None:
        self.last_heard = now()

    def _use(self) -> _Tools:
        """The parts that speak to a cluster, loaded when first used.

        Every process imports this module through the gateway, and most never speak to a cluster; the Kubernetes client
        and aiohttp would cost each of them 45 MB and most of a second. No cycle is broken by this.
        """
        if self._tools is None:
            from portal.clusters.kube.connection import Connection  # noqa: PLC0415
            from portal.clusters.kube.writes import Writer  # noqa: PLC0415

            with self._lock:
                if self._tools is None:
                    connection = Connection(self._kubeconfig)
                    self._tools = _Tools(connection, Writer(connection, instance=self._instance))
        return self._tools
