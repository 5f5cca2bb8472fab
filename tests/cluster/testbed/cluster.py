"""What a test holds in its hands: a cluster to talk to and, if it is our own, to break."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from . import components, nodes, probes
from .bed import Bed
from .kubectl import Kubectl, KubectlError
from .paths import TestbedError

Answer = TypeVar("Answer")
__all__ = ["Cluster", "KubectlError"]


class Cluster:
    """Our own testbed (`own` is true), or the cluster of somebody's kubeconfig, where nothing is broken on purpose."""

    def __init__(self, kubectl: Kubectl, kubeconfig: Path, bed: Bed | None) -> None:
        self._kubectl = kubectl
        self._bed = bed
        self.kubeconfig = kubeconfig

    @classmethod
    def of_bed(cls, bed: Bed) -> Cluster:
        return cls(bed.setting.kubectl, bed.setting.layout.kubeconfig(), bed)

    @classmethod
    def of_kubeconfig(cls, kubeconfig: Path) -> Cluster:
        """Somebody's cluster with Kueue.

        Raises TestbedError if there is no kubectl, no answer or no Kueue.
        """
        program = shutil.which("kubectl")
        if program is None:
            raise TestbedError("KUBECONFIG is set, but there is no kubectl on PATH to use it with")
        if not kubeconfig.is_file():
            raise TestbedError(f"KUBECONFIG={kubeconfig}: no such file")
        kubectl = Kubectl(program, kubeconfig)
        try:
            kubectl.run("get", "crd", "workloads.kueue.x-k8s.io", seconds=20)
        except KubectlError as error:
            raise TestbedError(f"{kubeconfig} leads to no cluster with Kueue: {error}") from error
        return cls(kubectl, kubeconfig, None)

    @property
    def own(self) -> bool:
        return self._bed is not None

    @property
    def program(self) -> str:
        """The kubectl, for whoever runs one that does not end by itself."""
        return self._kubectl.program

    @property
    def bed(self) -> Bed:
        if self._bed is None:
            raise TestbedError("This cluster is not ours to break: unset KUBECONFIG to use the testbed")
        return self._bed

    # -- talking

    def kubectl(self, *arguments: str, stdin: str | None = None, seconds: float = 60) -> str:
        """What `kubectl <arguments>` wrote to stdout.

        Raises KubectlError (its `stderr` is what kubectl said) on failure and after `seconds`.
        """
        return self._kubectl.run(*arguments, stdin=stdin, seconds=seconds)

    def kubectl_bytes(self, *arguments: str, seconds: float = 60) -> bytes:
        """The same byte for byte, for logs."""
        return self._kubectl.run_bytes(*arguments, seconds=seconds)

    def kubectl_json(self, *arguments: str) -> Any:
        """The parsed answer of `kubectl <arguments> -o json`, or of `get --raw PATH`."""
        return self._kubectl.json(*arguments)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Server-side apply of whole objects."""
        self._kubectl.apply(*objects)

    def wait_for(self, what: str, probe: Callable[[], Answer | None], *, seconds: float = 60) -> Answer:
        """The first true answer of `probe`; TestbedError with `what` when there is none in time."""
        return probes.until(probe, seconds=seconds, what=what)

    # -- breaking (our own testbed only; names are those of components.NAMES)

    def pause(self, name: str) -> None:
        """SIGSTOP: its sockets stay open and nobody answers."""
        self.bed.processes.pause(name)

    def resume(self, name: str) -> None:
        """SIGCONT."""
        self.bed.processes.resume(name)

    @contextlib.contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """Paused for the body of a `with`."""
        self.pause(name)
        try:
            yield
        finally:
            self.resume(name)

    def kill(self, name: str) -> None:
        """SIGKILL, gone when this returns. What it had started (containers, of the kubelet) lives on."""
        self.bed.processes.kill(name)

    def start(self, name: str) -> None:
        """Start one that is dead, and wait until it serves."""
        self.bed.start(name)

    def state(self, name: str) -> str:
        """`running`, `paused` or `dead`."""
        return self.bed.processes.state(name)

    def log(self, name: str, lines: int = 50) -> str:
        """The last lines of a component's own log."""
        return self.bed.processes.tail(name, lines)

    def heal(self) -> None:
        """Resume and start what a test has left paused or dead, and give the kubelet its own configuration again."""
        names = [name for name in components.NAMES if name in self.bed.processes.names()]
        for name in names:
            if self.state(name) == "paused":
                self.resume(name)
        for name in names:
            if self.state(name) == "dead":
                self.start(name)
        if self.bed.setting.kubelet_changes:
            self.set_kubelet()

    # -- changing

    def import_image(self, archive: Path) -> None:
        """Make the image of an archive (`docker save`, OCI) known to the node."""
        self.bed.import_image(archive)

    def add_kwok_nodes(self, count: int, *, gpus: int = 8) -> None:
        """Have pretended nodes `kwok-1` to `kwok-<count>`, each 64 CPU, 512Gi and `gpus`; pods there end at once."""
        if self.bed.processes.state("kwok") == "dead":
            self.bed.start("kwok")
        self.apply(*(nodes.kwok_node(number, count=gpus) for number in range(1, count + 1)))
        self.kubectl(
            "wait",
            "--for=condition=Ready",
            "node",
            "--selector=beamtime.test/node-kind=kwok",
            "--timeout=60s",
            seconds=70,
        )

    def set_kubelet(self, **changes: Any) -> None:
        """Restart the kubelet with fields of its configuration changed (`containerLogMaxSize="64Ki"`), or as it was."""
        self.bed.change_kubelet(changes)

    def compact_etcd(self) -> int:
        """Forget all history in etcd (answers the revision); an older resource version is answered with 410 then."""
        port = self.bed.setting.ports["etcd"]
        revision = int(_post(port, "/v3/maintenance/status", {})["header"]["revision"])
        _post(port, "/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision


def external_kubeconfig() -> Path | None:
    """`$KUBECONFIG`, if it is set."""
    given = os.environ.get("KUBECONFIG")
    return Path(given).expanduser() if given else None


def _post(port: int, path: str, body: dict[str, Any]) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request("POST", path, json.dumps(body))
        reply = connection.getresponse()
        answer = reply.read().decode()
    if reply.status != 200:
        raise TestbedError(f"etcd answers {path} with {reply.status}: {answer}")
    return json.loads(answer)
