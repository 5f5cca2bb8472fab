"""Starting, stopping and telling the end of the runners, one of which stands behind every pod."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from portal.clusters.local.records import JobRecord, PodRecord
from portal.clusters.local.runner import files, processes
from portal.clusters.local.runner.pod import GRACE
from portal.clusters.local.store import Store
from portal.clusters.specs import FlavorSpec

logger = logging.getLogger(__name__)

RUNNER = Path(files.__file__).with_name("__main__.py")
VANISHED = (
    "NodeLost",
    "The process that watched over this pod on {node} ended without a word, by a crash, a kill or a restart of the "
    "machine. What was left of the pod was ended; its exit code is unknown.",
)
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Launcher:
    """Runners of one store. Those that this process started are its children; those of an earlier life are adopted."""

    def __init__(self, store: Store, *, node: str) -> None:
        self._store = store
        self._node = node
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        # Pods whose runner was started in this life of the portal.
        self._tried: set[str] = set()
        self._refused: set[str] = set()
        # (pod, why) of each stop that was put on file, and of each that the runner was told of.
        self._filed: set[tuple[str, str]] = set()
        self._told: set[tuple[str, str]] = set()

    def start(self, job: JobRecord, pod: PodRecord, flavor: FlavorSpec | None) -> None:
        """Start the pod's runner. Starting one twice is harmless: the second finds the lock taken or the work done.

        Where the machine has no room for one more process the pod goes on waiting, and the next look tries again.
        """
        try:
            self._children[pod.uid] = self._spawn(job, pod, flavor)
        except OSError as error:
            if pod.uid not in self._refused:
                logger.warning("the runner of pod %s cannot be started yet: %s", pod.name, error)
            self._refused.add(pod.uid)
        else:
            self._tried.add(pod.uid)

    def _spawn(self, job: JobRecord, pod: PodRecord, flavor: FlavorSpec | None) -> "subprocess.Popen[bytes]":
        folder = self._store.pod_folder(pod.uid)
        folder.mkdir(mode=0o700, exist_ok=True)
        files.write_json(str(folder / files.POD), self._order(job, pod, flavor))
        with (folder / files.ERRORS).open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(RUNNER), str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                # The portal's own environment holds its keys; neither the runner nor the job gets it.
                env={"LANG": "C.UTF-8"},
                # Out of the terminal's process group, so that Ctrl-C and a closed terminal do not reach it.
                start_new_session=True,
            )

    def _order(self, job: JobRecord, pod: PodRecord, flavor: FlavorSpec | None) -> Mapping[str, object]:
        work = job.spec.work
        folder = self._store.pod_folder(pod.uid)
        inherited = os.environ.get("PATH") or DEFAULT_PATH
        base = {
            # The interpreter that runs the portal first, so that `python3` means something on every machine.
            "PATH": f"{Path(sys.executable).parent}:{inherited}",
            "HOME": str(folder / files.WORK),
            "LANG": "C.UTF-8",
            # As in a cluster: lines come when they are printed, and a progress bar redraws once a second.
            "PYTHONUNBUFFERED": "1",
            "TQDM_MININTERVAL": "1",
        }
        forced = {
            "JOB_COMPLETION_INDEX": str(pod.index),
            # Empty for a job without GPUs, so that it cannot take one that belongs to another.
            "CUDA_VISIBLE_DEVICES": ",".join(pod.devices),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }
        if work.gpus and flavor is not None and flavor.pretended:
            forced["BEAMTIME_PRETENDED_GPUS"] = f"{work.gpus} × {flavor.gpu_model or flavor.name}"
        return {
            "uid": pod.uid,
            "argv": [*work.command, *work.args],
            "base": base,
            "env": [list(pair) for pair in work.env],
            "secrets": str(self._store.secrets_file(job)) if work.secret_env else "",
            "forced": forced,
            "memory": work.memory_mib << 20,
            "time_limit": work.time_limit_seconds,
            "bell": str(self._store.bell),
        }

    def stop(self, pod: PodRecord, *, reason: str = "", message: str = "", grace: float = GRACE) -> None:
        """Have the runner end its pod: SIGTERM to the command's group, SIGKILL `grace` seconds later.

        To be called at every look until the pod is over: a runner that is not up yet reads the file at its start,
        one that has just looked for it is told as soon as its process id is known.
        """
        what = (pod.uid, reason)
        if what not in self._filed:
            order = {"reason": reason, "message": message, "grace": grace}
            files.write_json(str(self._store.pod_folder(pod.uid) / files.STOP), order)
            self._filed.add(what)
        if pod.status.runner is not None and what not in self._told:
            self._told.add(what)
            processes.send(*pod.status.runner, signal.SIGTERM)

    def alive(self, pod: PodRecord) -> bool:
        """Whether a runner is at work on the pod, or is on its way up."""
        child = self._children.get(pod.uid)
        return (child is not None and child.poll() is None) or self._locked(pod.uid)

    def tried(self, pod: PodRecord) -> bool:
        """Whether this process has started a runner for the pod. What an earlier one did may not have come so far."""
        return pod.uid in self._tried

    def reap(self) -> None:
        """Collect the runners that have ended, so that they do not stay as zombies."""
        for uid, child in list(self._children.items()):
            if child.poll() is not None:
                del self._children[uid]

    def close(self, pod: PodRecord) -> None:
        """End a pod whose runner is gone, and write down what is known of its end."""
        folder = self._store.pod_folder(pod.uid)
        lock = files.take_lock(str(folder / files.LOCK))
        if lock is None:
            return
        try:
            group = pod.status.leader[0] if pod.status.leader and self._same_leader(pod.status.leader) else 0
            processes.end_all(group, pod.uid)
            files.write_json(str(folder / files.STATUS), self._last_words(pod, folder))
        finally:
            os.close(lock)

    def kill(self, pod: PodRecord) -> None:
        """The last resort: SIGKILL for a runner and everything of its pod."""
        if pod.status.runner is not None:
            processes.send(*pod.status.runner, signal.SIGKILL)
        child = self._children.get(pod.uid)
        if child is not None and child.poll() is None:
            child.kill()
        processes.end_all(0, pod.uid)

    def orphans(self, known: set[str]) -> list[PodRecord]:
        """Pods that run though no job names them, such as those of a job whose files were removed by hand."""
        found = []
        for name in [path.name for path in self._store.pods.iterdir()]:
            if name not in known and self._locked(name):
                pod = PodRecord(uid=name, name="", index=0, created_at=0)
                self._store.refresh(pod)
                found.append(pod)
        return found

    def _locked(self, uid: str) -> bool:
        path = self._store.pod_folder(uid) / files.LOCK
        if not path.exists():
            return False
        lock = files.take_lock(str(path))
        if lock is None:
            return True
        os.close(lock)
        return False

    def _same_leader(self, leader: tuple[int, str]) -> bool:
        """Whether the command's first process still is what it was; else its id may mean somebody else's group."""
        return processes.started(leader[0]) == leader[1]

    def _last_words(self, pod: PodRecord, folder: Path) -> Mapping[str, object]:
        stop = files.read_json(str(folder / files.STOP))
        reason, message = VANISHED[0], VANISHED[1].format(node=self._node)
        if pod.status.runner is None:
            said = _tail(folder / files.ERRORS)
            reason, message = "NodeLost", f"The pod could not be started on {self._node}. {said}".strip()
        if stop is not None and stop.get("reason"):
            reason, message = str(stop["reason"]), str(stop["message"])
        started_at = pod.status.container.get("started_at")
        ends: dict[str, object] = {"state": "terminated", "reason": "ContainerStatusUnknown"}
        if isinstance(started_at, int):
            ends |= {"started_at": started_at, "finished_at": max(started_at, _last_sign(folder))}
        runner = list(pod.status.runner) if pod.status.runner else None
        leader = list(pod.status.leader) if pod.status.leader else None
        return {
            "phase": "Failed",
            "reason": reason,
            "message": message,
            "container": ends,
            "runner": runner,
            "leader": leader,
        }


def _last_sign(folder: Path) -> int:
    """When the pod was last heard of: the last write to its log or its status, in whole seconds."""
    times = [path.stat().st_mtime for path in (folder / files.LOG, folder / files.STATUS) if path.exists()]
    return int(max(times, default=time.time()))


def _tail(path: Path) -> str:
    try:
        return path.read_text(errors="replace")[-300:].strip()
    except FileNotFoundError:
        return ""
