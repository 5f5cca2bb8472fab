"""The configuration files of the components, written into the run directory. JSON is YAML, so no template is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import host, images
from .paths import BRIDGE, POD_SUBNET, Layout


@dataclass(frozen=True)
class Options:
    """What can differ from run to run. Each is also an environment variable, `BEAMTIME_CLUSTER_<NAME>`."""

    gpus: int = 8  # nvidia.com/gpu that the node says it has
    log_max_size: str = "10Mi"  # a container's log is rotated above this size, which the kubelet looks at every 3 s
    node_grace_seconds: int = 40  # without a sign of the kubelet until the node counts as not ready
    toleration_seconds: int = 20  # pods stay on such a node for this long

    @classmethod
    def from_environment(cls, **given: int | str | None) -> Options:
        """Given values first, then the environment, then the defaults."""
        values: dict[str, Any] = {}
        for name, default in asdict(cls()).items():
            chosen = given.get(name) or os.environ.get(f"BEAMTIME_CLUSTER_{name.upper()}") or default
            values[name] = type(default)(chosen)
        return cls(**values)


def kueue(layout: Layout, ports: Mapping[str, int]) -> Path:
    """Kueue as a plain process: no leader election (it wants a pod), certificates from files, no brake on calls."""
    settings = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"host": "127.0.0.1", "port": ports["kueue-webhook"], "certDir": str(host.KUEUE_CERTS[1])},
        "metrics": {"bindAddress": f"127.0.0.1:{ports['kueue-metrics']}", "enableClusterQueueResources": True},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports['kueue-health']}"},
        "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": ports["kueue-visibility"]},
        "clientConnection": {"qps": 1000, "burst": 2000},
        "integrations": {"frameworks": ["batch/job"]},
    }
    return _write(layout.run / "kueue.yaml", settings)


def kubelet(layout: Layout, ports: Mapping[str, int], options: Options, changes: Mapping[str, Any]) -> Path:
    """A kubelet on loopback that leaves the machine's cgroups and firewall alone; `changes` win over all else."""
    certs = layout.certs
    settings: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": ports["kubelet"],
        "healthzPort": ports["kubelet-health"],
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certs / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certs / "kubelet.crt"),
        "tlsPrivateKeyFile": str(certs / "kubelet.key"),
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
        "podLogsDir": str(layout.run / "podlogs"),
        "volumePluginDir": str(layout.run / "kubelet" / "volume-plugins"),
        "containerLogMonitorInterval": "3s",
        "containerLogMaxSize": options.log_max_size,
        "evictionHard": {"memory.available": "50Mi"},
        # A disk that is rather full is the developer's business; without this the kubelet would delete the imported
        # images.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "serializeImagePulls": False,
    }
    return _write(layout.run / "kubelet.yaml", {**settings, **changes})


def containerd(layout: Layout) -> Path:
    """containerd with everything below the run directory, and the CNI network of the pods."""
    place = layout.containerd
    (place / "cni").mkdir(parents=True)
    _write(place / "cni" / "10-beamtime.conflist", _network(place))
    config = place / "config.toml"
    config.write_text(f"""version = 3
root = "{place}/root"
state = "{place}/state"
[grpc]
  address = "{layout.containerd_socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{place}/opt"
[plugins."io.containerd.shim.v1.manager"]
  # At most 38 characters, so it cannot lie below the run directory.
  socket_dir = "{host.SHIM_SOCKETS}"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{snapshotter(place)}"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{images.PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
  # Without CAP_SYS_RESOURCE (most containers) runc may not lower an oom_score_adj, and says "can't get final child's
  # PID".
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{host.plugin_directory()}"]
    conf_dir = "{place}/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
      Root = "{place}/runc"
""")
    return config


def snapshotter(place: Path) -> str:
    """`overlayfs` where the kernel lets us, else `native`, which copies the whole image for every container."""
    trial = place / "overlay"
    for name in ("lower", "upper", "work", "merged"):
        (trial / name).mkdir(parents=True, exist_ok=True)
    layers = f"lowerdir={trial}/lower,upperdir={trial}/upper,workdir={trial}/work"
    command = ["mount", "-t", "overlay", "overlay", "-o", layers, str(trial / "merged")]
    works = subprocess.run(command, capture_output=True, check=False).returncode == 0
    if works:
        subprocess.run(["umount", str(trial / "merged")], capture_output=True, check=True)
    shutil.rmtree(trial)
    return "overlayfs" if works else "native"


def _network(place: Path) -> dict[str, Any]:
    addresses = {
        "type": "host-local",
        "dataDir": str(place / "addresses"),
        "ranges": [[{"subnet": POD_SUBNET}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "ipMasq": False, "ipam": addresses}
    return {"cniVersion": "1.0.0", "name": "beamtime", "plugins": [bridge]}


def _write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content, indent=1))
    return path
