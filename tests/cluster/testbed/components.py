"""The components by name: the command that starts each and the question that tells whether it is ready."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import configs, probes
from .build import Builds
from .configs import Options
from .kubectl import Kubectl
from .paths import NODE, SERVICE_SUBNET, Layout

# In the order of starting; `down` goes the other way.
NAMES = ("etcd", "containerd", "apiserver", "controller-manager", "scheduler", "kueue", "kubelet", "kwok")
PORTS = (
    "etcd",
    "etcd-peer",
    "apiserver",
    "controller-manager",
    "scheduler",
    "kueue-webhook",
    "kueue-metrics",
    "kueue-health",
    "kueue-visibility",
    "kubelet",
    "kubelet-health",
    "kwok",
)


@dataclass(frozen=True)
class Setting:
    """Everything a component's command depends on."""

    layout: Layout
    builds: Builds
    ports: Mapping[str, int]
    options: Options
    kubelet_changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.ports['apiserver']}"

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(self.builds.program("kubectl"), self.layout.kubeconfig())

    def environment(self) -> dict[str, str]:
        """containerd finds its shim and runc by PATH; nothing else of the caller's environment is passed on."""
        path = f"{self.builds.containerd}/bin:{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
        return {"PATH": path, "HOME": str(self.layout.run), "TMPDIR": "/tmp"}


def command(name: str, setting: Setting) -> list[str]:
    """The argument list that starts a component."""
    return _COMMANDS[name](setting)


def ready(name: str, setting: Setting) -> bool:
    """Does it serve? (For the kubelet: is the node Ready, and does the kubelet that we started answer.)"""
    ports = setting.ports
    if name == "apiserver":
        return setting.kubectl.works("get", "--raw", "/readyz")
    if name == "containerd":
        return setting.layout.containerd_socket.exists() and _containerd_answers(setting)
    if name == "kubelet":
        return probes.answers(ports["kubelet-health"], "/healthz") and _node_ready(setting)
    path = {"etcd": "/health", "kueue": "/readyz"}.get(name, "/healthz")
    port = ports["kueue-health" if name == "kueue" else name]
    return probes.answers(port, path, tls=name in ("controller-manager", "scheduler"))


def _containerd_answers(setting: Setting) -> bool:
    socket = str(setting.layout.containerd_socket)
    return Kubectl(setting.builds.program("ctr"), None).works("--address", socket, "version")


def _node_ready(setting: Setting) -> bool:
    path = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    return setting.kubectl.answer("get", "node", NODE, "-o", path) == "True"


def _etcd(setting: Setting) -> list[str]:
    client, peer = (f"http://127.0.0.1:{setting.ports[name]}" for name in ("etcd", "etcd-peer"))
    return [
        setting.builds.program("etcd"),
        f"--data-dir={setting.layout.run}/etcd",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]


def _containerd(setting: Setting) -> list[str]:
    return [setting.builds.program("containerd"), "--config", str(setting.layout.containerd / "config.toml")]


def _apiserver(setting: Setting) -> list[str]:
    certs, patience = setting.layout.certs, setting.options.toleration_seconds
    return [
        setting.builds.program("kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{setting.ports['etcd']}",
        "--bind-address=127.0.0.1",
        f"--secure-port={setting.ports['apiserver']}",
        "--endpoint-reconciler-type=none",
        f"--service-cluster-ip-range={SERVICE_SUBNET}",
        f"--tls-cert-file={certs}/apiserver.crt",
        f"--tls-private-key-file={certs}/apiserver.key",
        f"--client-ca-file={certs}/ca.crt",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--default-not-ready-toleration-seconds={patience}",
        f"--default-unreachable-toleration-seconds={patience}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={certs}/accounts.pub",
        f"--service-account-signing-key-file={certs}/accounts.key",
        f"--kubelet-client-certificate={certs}/front.crt",
        f"--kubelet-client-key={certs}/front.key",
        f"--kubelet-certificate-authority={certs}/ca.crt",
        # By name, which /etc/hosts leads to loopback: that is how logs, exec and attach reach a kubelet on 127.0.0.1.
        "--kubelet-preferred-address-types=Hostname",
        f"--requestheader-client-ca-file={certs}/ca.crt",
        # The authority is shared, so the one certificate that may speak for others has to be named.
        "--requestheader-allowed-names=front",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={certs}/front.crt",
        f"--proxy-client-key-file={certs}/front.key",
    ]


def _controlling(setting: Setting, name: str, program: str) -> list[str]:
    """What the controller manager and the scheduler share."""
    kubeconfig, certs = setting.layout.kubeconfig(name), setting.layout.certs
    return [
        setting.builds.program(program),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={setting.ports[name]}",
        f"--tls-cert-file={certs}/{name}.crt",
        f"--tls-private-key-file={certs}/{name}.key",
        "--leader-elect=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def _controller_manager(setting: Setting) -> list[str]:
    certs = setting.layout.certs
    return [
        *_controlling(setting, "controller-manager", "kube-controller-manager"),
        "--concurrent-job-syncs=20",
        f"--node-monitor-grace-period={setting.options.node_grace_seconds}s",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={certs}/accounts.key",
        f"--root-ca-file={certs}/ca.crt",
        "--controllers=*,-node-ipam-controller,-cloud-node-lifecycle-controller",
        f"--cluster-signing-cert-file={certs}/ca.crt",
        f"--cluster-signing-key-file={certs}/ca.key",
    ]


def _scheduler(setting: Setting) -> list[str]:
    return _controlling(setting, "scheduler", "kube-scheduler")


def _kueue(setting: Setting) -> list[str]:
    config = configs.kueue(setting.layout, setting.ports)
    return [setting.builds.program("kueue"), f"--config={config}", f"--kubeconfig={setting.layout.kubeconfig('kueue')}"]


def _kubelet(setting: Setting) -> list[str]:
    config = configs.kubelet(setting.layout, setting.ports, setting.options, setting.kubelet_changes)
    return [
        setting.builds.program("kubelet"),
        f"--config={config}",
        f"--kubeconfig={setting.layout.kubeconfig('kubelet')}",
        f"--root-dir={setting.layout.run}/kubelet",
        f"--cert-dir={setting.layout.run}/kubelet/pki",
        f"--hostname-override={NODE}",
        "--node-labels=beamtime.test/node-kind=gpu,beamtime.test/cpu=true",
    ]


def _kwok(setting: Setting) -> list[str]:
    return [
        setting.builds.program("kwok"),
        f"--kubeconfig={setting.layout.kubeconfig()}",
        f"--config={setting.builds.kwok}/stages.yaml",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{setting.ports['kwok']}",
    ]


_COMMANDS: dict[str, Callable[[Setting], list[str]]] = {
    "etcd": _etcd,
    "containerd": _containerd,
    "apiserver": _apiserver,
    "controller-manager": _controller_manager,
    "scheduler": _scheduler,
    "kueue": _kueue,
    "kubelet": _kubelet,
    "kwok": _kwok,
}
