"""Where the local backend keeps everything: small files under one folder, each replaced whole or not at all.

    queues.json                 ClusterQueues and ResourceFlavors
    spaces/<namespace>.json     a team's LocalQueues
    jobs/<namespace>.<name>/    spec.json, secrets.json, state.json; appears by one rename, so a name is taken once
    deleting/<namespace>.<name> the uid of a job whose deletion was asked for
    pods/<uid>/                 see runner/files.py
    bell                        a FIFO; a byte in it wakes the controller
    controller.lock             held by the one controller

A namespace has no dot (it is an RFC 1123 label), so the key of a job can be taken apart again.
"""

import contextlib
import logging
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from portal.clusters.local.records import JobRecord, PodRecord, PodStatus, spec_from_json
from portal.clusters.local.runner import files
from portal.clusters.specs import JobSpec

logger = logging.getLogger(__name__)

# How long the log of a deleted pod can still be read, for a follower that came late.
KEEP_LOGS = 60.0


def key_of(namespace: str, name: str) -> str:
    return f"{namespace}.{name}"


class Store:
    """The folder of one cluster. Any number of processes may read and create; one controller changes the rest."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.jobs = root / "jobs"
        self.pods = root / "pods"
        self.spaces = root / "spaces"
        self.deleting = root / "deleting"
        self.queues = root / "queues.json"
        self.bell = root / "bell"
        self.lock = root / "controller.lock"

    def prepare(self) -> None:
        """Make the folders and the bell; readable by this user only, because environments lie in there."""
        for folder in (self.root, self.jobs, self.pods, self.spaces, self.deleting):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self.bell, 0o600)

    def ring(self) -> None:
        """Wake the controller, wherever it runs."""
        files.ring(str(self.bell))

    # --- jobs ----------------------------------------------------------------------------------------------------

    def add(self, spec: JobSpec, secrets: Mapping[str, str]) -> JobRecord | None:
        """Put a job there, or None if its name is taken. There is no moment at which half of it can be seen."""
        job = JobRecord(
            key=key_of(spec.namespace, spec.name),
            uid=str(uuid.uuid4()),
            created_ns=time.time_ns(),
            digest=spec.digest,
            spec=spec,
        )
        draft = self.jobs / f".new-{job.uid}"
        draft.mkdir(mode=0o700)
        try:
            fixed = {"uid": job.uid, "created_ns": job.created_ns, "digest": job.digest, "spec": asdict(spec)}
            files.write_json(str(draft / "spec.json"), fixed)
            files.write_json(str(draft / "secrets.json"), dict(secrets))
            # A folder that is not empty is never replaced by a rename, so the first one of a name wins.
            draft.rename(self.jobs / job.key)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            if (self.jobs / job.key).exists():
                return None
            raise
        return job

    def load(self, key: str) -> JobRecord | None:
        """A job with its state and the status of its pods; None if there is no readable one."""
        fixed = files.read_json(str(self.jobs / key / "spec.json"))
        if fixed is None:
            return None
        try:
            job = _record(key, fixed)
            state = files.read_json(str(self.jobs / key / "state.json"))
            if state is not None:
                job.take_state(state)
        except (KeyError, TypeError, ValueError) as error:
            logger.warning("job %s cannot be read (%r) and counts as missing", key, error)
            return None
        for pod in job.pods:
            self.refresh(pod)
        return job

    def keys(self) -> set[str]:
        """Every job that is there; drafts and leavings begin with a dot."""
        with os.scandir(self.jobs) as entries:
            return {entry.name for entry in entries if not entry.name.startswith(".")}

    def save(self, job: JobRecord) -> None:
        """Keep what changed. A job whose folder somebody removed meanwhile stays removed."""
        with contextlib.suppress(FileNotFoundError):
            files.write_json(str(self.jobs / job.key / "state.json"), job.state())

    def secrets_file(self, job: JobRecord) -> Path:
        return self.jobs / job.key / "secrets.json"

    def forget_secrets(self, job: JobRecord) -> None:
        self.secrets_file(job).unlink(missing_ok=True)

    def ask_deletion(self, job: JobRecord) -> None:
        files.write_json(str(self.deleting / job.key), {"uid": job.uid, "at": int(time.time())})

    def deletions(self) -> Iterator[tuple[str, str, int]]:
        """(key, uid, when) of every deletion that was asked for."""
        for path in self.deleting.iterdir():
            data = None if path.name.startswith(".") else files.read_json(str(path))
            if data is not None:
                yield path.name, str(data["uid"]), int(str(data["at"]))

    def remove(self, job: JobRecord) -> None:
        """Let go of a job and of all but the logs of its pods, which stay for `KEEP_LOGS`."""
        grave = self.jobs / f".gone-{job.uid}"
        with contextlib.suppress(FileNotFoundError):
            (self.jobs / job.key).rename(grave)
        shutil.rmtree(grave, ignore_errors=True)
        for pod in job.pods:
            self.strip(pod.uid)
        self.drop_deletion(job.key)

    def drop_deletion(self, key: str) -> None:
        (self.deleting / key).unlink(missing_ok=True)

    # --- pods ----------------------------------------------------------------------------------------------------

    def pod_folder(self, uid: str) -> Path:
        return self.pods / uid

    def refresh(self, pod: PodRecord) -> bool:
        """Read the pod's status again where its file changed; True if it did."""
        path = self.pods / pod.uid / files.STATUS
        try:
            facts = path.stat()
        except FileNotFoundError:
            return False
        seen = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        if seen == pod.seen:
            return False
        pod.status, pod.seen = PodStatus.from_json(files.read_json(str(path))), seen
        return True

    def strip(self, uid: str) -> None:
        """Remove what a deleted pod need not keep: its working folder and its environment."""
        folder = self.pods / uid
        shutil.rmtree(folder / files.WORK, ignore_errors=True)
        for name in (files.POD, files.LOCK, files.STOP):
            (folder / name).unlink(missing_ok=True)

    def bury(self, known: set[str]) -> None:
        """Remove the folders of pods that belong to no job any more, `KEEP_LOGS` after the last change in them."""
        for path in list(self.pods.iterdir()):
            with contextlib.suppress(FileNotFoundError):
                if path.name not in known and time.time() - path.stat().st_mtime > KEEP_LOGS:
                    shutil.rmtree(path, ignore_errors=True)

    def tidy(self) -> None:
        """At the controller's start: remove what a crash left half made or half removed."""
        for path in list(self.jobs.iterdir()):
            with contextlib.suppress(FileNotFoundError):  # a draft becomes a job at any moment
                old = time.time() - path.stat().st_mtime > KEEP_LOGS
                if path.name.startswith(".gone-") or (path.name.startswith(".new-") and old):
                    shutil.rmtree(path, ignore_errors=True)


def _record(key: str, fixed: Mapping[str, Any]) -> JobRecord:
    return JobRecord(
        key=key,
        uid=str(fixed["uid"]),
        created_ns=int(fixed["created_ns"]),
        digest=str(fixed["digest"]),
        spec=spec_from_json(fixed["spec"]),
    )
