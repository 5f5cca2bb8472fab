"""What the testbed needs from the machine, what it changes on it, and how it puts that back."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from .paths import BRIDGE, NODE, TestbedError

HOSTS = Path("/etc/hosts")
HOSTS_LINE = f"127.0.0.1 {NODE} # beamtime-testbed\n"
# Kueue reads these two pairs from fixed paths, without a setting for them.
KUEUE_CERTS = (Path("/etc/kueue/metrics/certs"), Path("/visibility"))
# The kubelet sets these for the whole machine and never sets them back.
SYSCTLS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
)
PLUGIN_DIRECTORIES = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
SHIM_SOCKETS = Path("/run/beamtime-testbed")
# Directories that containerd, the CNI plugins and the kubelet write to at paths that no setting moves.
LITTER = (
    Path("/var/lib/kubelet"),
    Path("/var/lib/cni"),
    Path("/var/log/containers"),
    Path("/run/containerd"),
    Path("/opt/containerd"),
)


def _static_busybox() -> bool:
    busybox = shutil.which("busybox")
    return busybox is not None and b"ld-linux" not in Path(busybox).read_bytes()[:4096]


def _plugins() -> bool:
    return any(
        all((place / name).exists() for name in ("bridge", "host-local", "loopback")) for place in PLUGIN_DIRECTORIES
    )


def _command(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


# Debian's package, and the question whether what it brings is here (it may come from elsewhere).
PACKAGES: dict[str, Callable[[], bool]] = {
    "runc": _command("runc"),
    "containernetworking-plugins": _plugins,
    "busybox-static": _static_busybox,
    "iptables": _command("iptables"),
    "iproute2": _command("ip"),
    "openssl": _command("openssl"),
}


def prepare(say: Callable[[str], None]) -> None:
    """Check that this machine can run the testbed, and install from Debian what is missing.

    Raises TestbedError with the remedy: not Linux or not root, no apt-get, an installation that fails, no Go.
    """
    if os.uname().sysname != "Linux" or os.geteuid() != 0:
        raise TestbedError(
            "The testbed runs containers, so it needs root on Linux. "
            "Run it as root, or set KUBECONFIG to a cluster that has Kueue."
        )
    missing = [name for name, present in PACKAGES.items() if not present()]
    if missing:
        _install(missing, say)
    if shutil.which("go") is None:
        raise TestbedError(
            "Go is missing: Kubernetes and Kueue are compiled from their Go modules. Install Go 1.26 or newer from "
            "https://go.dev/dl/ and put it on PATH, or set KUBECONFIG to a cluster that has Kueue."
        )


def _install(missing: list[str], say: Callable[[str], None]) -> None:
    remedy = f"install: {' '.join(missing)} (Debian's names)"
    if shutil.which("apt-get") is None:
        raise TestbedError(f"Programs are missing; {remedy}")
    say(f"installing from Debian: {' '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing]
    for command in (["apt-get", "update", "-q"], install):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise TestbedError(f"{' '.join(command)} failed; {remedy}\n{done.stderr[-2000:]}")
    still = [name for name in missing if not PACKAGES[name]()]
    if still:
        raise TestbedError(f"Installed, but still not usable: {' '.join(still)}")


def plugin_directory() -> Path:
    return next(place for place in PLUGIN_DIRECTORIES if (place / "bridge").exists())


def name_the_node() -> None:
    """Let the node's name lead to loopback: the kubelet refuses a loopback address, but not a name for one."""
    text = HOSTS.read_text()
    if HOSTS_LINE not in text:
        with HOSTS.open("a") as hosts:
            hosts.write(HOSTS_LINE if text.endswith("\n") else "\n" + HOSTS_LINE)


def forget_the_node() -> None:
    text = HOSTS.read_text()
    if HOSTS_LINE in text:
        # Written in place: inside a container /etc/hosts is a mount and cannot be replaced by another file.
        HOSTS.write_text(text.replace(HOSTS_LINE, ""))


def give_kueue_its_certificates(certs: Path) -> None:
    for place in KUEUE_CERTS:
        place.mkdir(parents=True, exist_ok=True)
        for suffix in ("crt", "key"):
            shutil.copy(certs / f"kueue.{suffix}", place / f"tls.{suffix}")


def remember() -> dict[str, object]:
    """What `put_back` has to know, taken before anything starts: the sysctls, and which directories were there."""
    values = {name: Path("/proc/sys", name).read_text().strip() for name in SYSCTLS if Path("/proc/sys", name).exists()}
    return {"sysctls": values, "there": [str(place) for place in LITTER if place.exists()]}


def put_back(before: dict[str, object]) -> None:
    """Undo what the testbed did outside its run directory; `before` is what `remember` answered, {} if that is lost."""
    forget_the_node()
    for place in KUEUE_CERTS:
        for suffix in ("crt", "key"):
            (place / f"tls.{suffix}").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.removedirs(place)
    shutil.rmtree(SHIM_SOCKETS, ignore_errors=True)
    if shutil.which("ip"):
        subprocess.run(["ip", "link", "delete", BRIDGE], capture_output=True, check=False)
    values = before.get("sysctls")
    if isinstance(values, dict):
        for name, value in values.items():
            with contextlib.suppress(OSError):
                Path("/proc/sys", name).write_text(value)
    there = before.get("there")
    if isinstance(there, list):
        for place in LITTER:
            if str(place) not in there:
                shutil.rmtree(place, ignore_errors=True)
