"""Bring the testbed up, find one that is up, take it down."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from . import build, certs, components, configs, host, kueue, leftovers, nodes, probes
from .build import Builds, Say
from .components import Setting
from .configs import Options
from .paths import Layout, TestbedError, cache_directory
from .processes import Processes

# Generous: a machine that compiles something else beside it takes its time.
PATIENCE = 90.0


class Bed:
    """A running testbed: its processes by name, and what they were started with."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.processes = Processes(setting.layout.processes, setting.layout.logs)

    def launch(self, name: str) -> None:
        """Start a component without waiting for it."""
        setting = self.setting
        argv = components.command(name, setting)
        self.processes.start(name, argv, environment=setting.environment(), directory=setting.layout.run)

    def await_ready(self, name: str, *, seconds: float = PATIENCE) -> None:
        """Wait until a launched component serves.

        Raises TestbedError with the end of its log when it dies or takes longer.
        """

        def serves() -> bool:
            if self.processes.state(name) == "dead":
                raise TestbedError(f"{name} ended at once; its log says:\n{self.processes.tail(name)}")
            return components.ready(name, self.setting)

        try:
            probes.until(serves, seconds=seconds, what=f"{name} to be ready")
        except TestbedError as late:
            raise TestbedError(f"{late}\n{name}'s log ends with:\n{self.processes.tail(name)}") from late
        if name == "kubelet":
            self._give_gpus()

    def start(self, name: str) -> None:
        """Start a component and wait until it serves; for the kubelet also until the node has its GPUs again."""
        self.launch(name)
        self.await_ready(name)

    def change_kubelet(self, changes: dict[str, Any]) -> None:
        """Restart the kubelet with these fields of its configuration changed; an empty dict is the way back."""
        self.setting = replace(self.setting, kubelet_changes=changes)
        self.processes.terminate(["kubelet"], seconds=20)
        self.start("kubelet")
        self.write_state()

    def import_image(self, archive: Path) -> None:
        """Make an OCI or docker archive known to the node."""
        setting = self.setting
        ctr = [
            setting.builds.program("ctr"),
            "--address",
            str(setting.layout.containerd_socket),
            "--namespace",
            "k8s.io",
        ]
        done = subprocess.run([*ctr, "images", "import", str(archive)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise TestbedError(f"containerd does not take {archive}: {done.stderr.strip()}")

    def write_state(self) -> None:
        setting = self.setting
        builds = {name: str(path) for name, path in vars(setting.builds).items()}
        state = {
            "ports": setting.ports,
            "options": asdict(setting.options),
            "builds": builds,
            "kubelet": setting.kubelet_changes,
        }
        setting.layout.state.write_text(json.dumps(state, indent=1))

    def _give_gpus(self) -> None:
        kubectl, count = self.setting.kubectl, self.setting.options.gpus

        def offered() -> bool:
            if nodes.gpus(kubectl) == count:
                return True
            nodes.give_gpus(kubectl, count)
            return False

        probes.until(offered, seconds=30, what=f"the node to offer {count} GPUs")


@contextmanager
def exclusive(say: Say, *, wait: bool) -> Iterator[None]:
    """Hold the testbed for oneself: tests pause and kill its parts, so two runs at once would fail in strange ways.

    Raises TestbedError at once when somebody else holds it and `wait` is false.
    """
    path = cache_directory() / "bed.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as held:
            lock.seek(0)
            holder = f"process {lock.read().strip()} is using the testbed"
            if not wait:
                raise TestbedError(f"{holder}; wait for it to end") from held
            say(f"{holder}; waiting for it to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def attach(layout: Layout, builds: Builds | None = None) -> Bed | None:
    """The bed that is up and whole, or None. With `builds`, only one that runs these very programs."""
    try:
        state = json.loads(layout.state.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    found = Builds(**{name: Path(path) for name, path in state["builds"].items()})
    if builds is not None and builds != found:
        return None
    bed = Bed(Setting(layout, found, state["ports"], Options(**state["options"]), state["kubelet"]))
    needed = [name for name in components.NAMES if name != "kwok" or name in bed.processes.names()]
    whole = all(bed.processes.state(name) == "running" for name in needed)
    return bed if whole and all(components.ready(name, bed.setting) for name in needed) else None


def up(layout: Layout, options: Options, say: Say) -> Bed:
    """Clear away what an earlier run left, compile what is missing, start everything and wait until all of it serves.

    Raises TestbedError with the reason; nothing is left running then, but the logs are kept.
    """
    host.prepare(say)
    builds = build.ensure(say)
    down(layout, say)
    leftovers.remove_files(layout.run)
    began = time.monotonic()
    layout.run.mkdir(parents=True, exist_ok=True)
    _before(layout).write_text(json.dumps(host.remember()))
    setting = Setting(layout, builds, probes.free_ports(components.PORTS), options)
    bed = Bed(setting)
    try:
        certs.make(layout, server=setting.server)
        host.name_the_node()
        host.give_kueue_its_certificates(layout.certs)
        configs.containerd(layout)
        _start_all(bed)
    except BaseException:
        down(layout, say)
        raise
    bed.write_state()
    say(f"the testbed is up after {time.monotonic() - began:.1f} s: KUBECONFIG={layout.kubeconfig()}")
    return bed


def _start_all(bed: Bed) -> None:
    """In the order of need, and side by side where there is none."""
    setting = bed.setting
    bed.launch("etcd")
    bed.launch("containerd")
    with _meanwhile(lambda: _import_images(bed)):
        bed.await_ready("etcd")
        bed.start("apiserver")
        for name in ("controller-manager", "scheduler"):
            bed.launch(name)
        kueue.definitions(setting)
        bed.launch("kueue")
    bed.launch("kubelet")
    for name in ("controller-manager", "scheduler", "kueue"):
        bed.await_ready(name)
    kueue.webhooks(setting)
    kueue.visibility(setting)
    bed.await_ready("kubelet")
    visible = ("get", "--raw", "/apis/visibility.kueue.x-k8s.io/v1beta2")
    probes.until(lambda: setting.kubectl.works(*visible), seconds=PATIENCE, what="Kueue's visibility API")


def _import_images(bed: Bed) -> None:
    bed.await_ready("containerd")
    for name in ("pause", "busybox", "python"):
        bed.import_image(bed.setting.builds.images / f"{name}.tar")


@contextmanager
def _meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """Do `work` in a thread beside the body, and raise here what it raised."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as failure:  # handed over to the caller's thread
            failures.append(failure)

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failures:
        raise failures[0]


def down(layout: Layout, say: Say) -> None:
    """End every process, container, mount and interface of the testbed, and put the machine back; only the logs stay.

    Works the same on a bed that is up, on one that crashed half way, and on none.
    """
    began = time.monotonic()
    processes = Processes(layout.processes, layout.logs)
    names = processes.names()
    # The kubelet first, so that it does not start anew what is about to be killed; etcd last, so that nobody waits
    # for it.
    processes.terminate([name for name in names if name == "kubelet"], seconds=10)
    processes.terminate([name for name in names if name != "etcd"], seconds=10)
    processes.terminate(names, seconds=10)
    leftovers.end(layout)
    leftovers.unmount(layout.run)
    leftovers.remove_cgroups(layout)
    try:
        before = json.loads(_before(layout).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        before = {}
    host.put_back(before)
    leftovers.remove_files(layout.run, keep=("logs",))
    if names:
        say(f"the testbed is down after {time.monotonic() - began:.1f} s; logs: {layout.logs}")


def _before(layout: Layout) -> Path:
    return layout.run / "before.json"
