"""Where the testbed keeps things: one cache outside the checkout, and inside it one run directory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "go"
NODE = "gpu-a"
BRIDGE = "beamtime0"
# A pod network that podman (10.88/16), flannel (10.244/16) and the service range of the API server do not use.
POD_SUBNET = "10.213.0.0/24"
SERVICE_SUBNET = "10.96.0.0/24"
# The kernel allows 107 characters for the path of a unix socket; the longest one below the run directory needs 47.
LONGEST_RUN_PATH = 60


class TestbedError(RuntimeError):
    """The testbed cannot go on; the text says what is wrong and what to do about it."""

    __test__ = False  # pytest would otherwise take the name for a class of tests


def cache_directory() -> Path:
    """`$BEAMTIME_CLUSTER_CACHE`, or `~/.cache/beamtime-cluster`."""
    return Path(os.environ.get("BEAMTIME_CLUSTER_CACHE") or "~/.cache/beamtime-cluster").expanduser().absolute()


@dataclass(frozen=True)
class Layout:
    """The paths of one run of the testbed, all below `run`."""

    run: Path

    @classmethod
    def default(cls) -> Layout:
        """The run directory of this cache.

        Raises TestbedError if its path is too long for the unix sockets that live below it.
        """
        run = cache_directory() / "run"
        if len(str(run)) > LONGEST_RUN_PATH:
            raise TestbedError(f"{run} is too long for unix sockets: set BEAMTIME_CLUSTER_CACHE to a shorter path")
        return cls(run)

    @property
    def logs(self) -> Path:
        return self.run / "logs"

    @property
    def processes(self) -> Path:
        return self.run / "processes"

    @property
    def certs(self) -> Path:
        return self.run / "certs"

    @property
    def containerd(self) -> Path:
        return self.run / "containerd"

    @property
    def containerd_socket(self) -> Path:
        return self.containerd / "containerd.sock"

    @property
    def containers(self) -> Path:
        """containerd's folder with one folder per running container, named by the container's id."""
        return self.containerd / "state" / "io.containerd.runtime.v2.task" / "k8s.io"

    @property
    def state(self) -> Path:
        """Written last by `up`: ports, options and builds of a bed that came up whole."""
        return self.run / "bed.json"

    def kubeconfig(self, user: str = "admin") -> Path:
        return self.run / f"{user}.kubeconfig"
