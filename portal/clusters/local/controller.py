"""What Kueue, the Job controller and the scheduler do in a cluster, for this machine, in one step at a time."""

import logging
import secrets
import threading
import time
import uuid
from collections.abc import Iterator, Mapping

from portal.clusters.local import facts, queues
from portal.clusters.local.admission import Ask, Holding, decide
from portal.clusters.local.devices import Gpu, pools
from portal.clusters.local.launcher import Launcher
from portal.clusters.local.outcome import conclude
from portal.clusters.local.records import JobRecord, PodRecord, note
from portal.clusters.local.store import Store
from portal.clusters.specs import AttemptFacts, QueueSnapshot

logger = logging.getLogger(__name__)

SHUTDOWN = {"reason": "NodeShutdown", "message": "Beamtime was stopped on this machine, and its jobs with it."}
BURY_EVERY = 10.0  # seconds


class Controller:
    """The one that decides. All it knows is in the store, so that the next one can go on where this one stopped."""

    def __init__(self, store: Store, *, cluster: str, gpus: tuple[Gpu, ...]) -> None:
        self._store = store
        self._cluster = cluster
        self._gpus = gpus
        self._launcher = Launcher(store, node=facts.node_name())
        self._jobs: dict[str, JobRecord] = {}
        self._queues = queues.Reader(store.queues)
        self._saved: dict[str, object] = {}
        # What is to be told: keys of jobs that changed, and the last facts of those that are gone.
        self._touched: set[str] = set()
        self._gone: dict[str, AttemptFacts] = {}
        # The queues that the last round of admission went by; None before the first.
        self._judged: QueueSnapshot | None = None
        self._asks: dict[str, Ask] = {}
        self._buried_at = 0.0
        # Seconds of grace for every pod once this machine stops working for Beamtime; set from outside.
        self.closing: float | None = None
        # Number of pods at work, and whether it is worth looking often; as of the last step.
        self.at_work = 0
        self.busy = False
        self.steps = 0
        self._turn = threading.Lock()
        store.tidy()

    def step(self, expected: Mapping[str, tuple[str, int]] | None = None) -> dict[str, AttemptFacts]:
        """Look at everything once, do what is due, and tell what changed since the last step, by job.

        `expected` ("namespace/name" -> job id, attempt): say also which of these do not exist.
        """
        with self._turn:
            return self._step(expected or {})

    def _step(self, expected: Mapping[str, tuple[str, int]]) -> dict[str, AttemptFacts]:
        self._launcher.reap()
        self._find()
        self._mark_deletions()
        for job in list(self._jobs.values()):
            self._watch_pods(job)
            if job.deleting_at is not None:
                self._delete(job)
        if self.closing is None:
            snapshot = self._queues.read()
            self._admit(snapshot)
            self._run_pods(snapshot)
        else:
            for pod in self._working():
                self._launcher.stop(pod, **SHUTDOWN, grace=self.closing)
        self._save()
        self._bury()
        self.at_work = sum(1 for _ in self._working())
        self.busy = any(not job.over or job.deleting_at is not None for job in self._jobs.values())
        changed = {key: facts.describe(self._jobs[key]) for key in self._touched & self._jobs.keys()}
        told = {**self._gone, **changed, **self._missing(expected)}
        self._touched, self._gone = set(), {}
        self.steps += 1
        return told

    def kill_all(self) -> None:
        """End what did not end when it was asked to."""
        with self._turn:
            for pod in self._working():
                self._launcher.kill(pod)

    def _working(self) -> Iterator[PodRecord]:
        """Pods that have a runner, or are about to."""
        for job in self._jobs.values():
            for pod in () if job.over else job.active:
                if pod.status.runner is not None or self._launcher.tried(pod):
                    yield pod

    # --- looking -------------------------------------------------------------------------------------------------

    def _find(self) -> None:
        """Take in new jobs; let go of those whose files somebody removed."""
        keys = self._store.keys()
        for key in sorted(keys - self._jobs.keys()):
            job = self._store.load(key)
            if job is not None:
                self._jobs[key], self._saved[key] = job, job.state()
                self._touched.add(key)
        for key in self._jobs.keys() - keys:
            for pod in self._jobs[key].active:
                self._launcher.stop(pod)
            self._let_go(self._jobs[key])

    def _mark_deletions(self) -> None:
        for key, uid, at in self._store.deletions():
            job = self._jobs.get(key)
            if job is None or job.uid != uid:
                self._store.drop_deletion(key)  # it is gone already, or another one of this name came
            elif job.deleting_at is None:
                job.deleting_at = at
                self._touched.add(key)

    def _watch_pods(self, job: JobRecord) -> None:
        """Read what the runners wrote; close the pods whose runner is gone."""
        if job.over or not job.admitted:
            return
        for pod in job.active:
            if self._store.refresh(pod):
                self._touched.add(job.key)
            if pod.scheduled_at is None or pod.status.over or self._launcher.alive(pod):
                continue
            # A runner writes its last status before its lock is free, so what is read now is its last word.
            self._store.refresh(pod)
            if not pod.status.over and (pod.status.runner is not None or self._launcher.tried(pod)):
                self._close(job, pod)
        if conclude(job):
            self._store.forget_secrets(job)
            self._touched.add(job.key)

    def _close(self, job: JobRecord, pod: PodRecord) -> None:
        self._launcher.close(pod)
        self._store.refresh(pod)
        self._touched.add(job.key)

    def _missing(self, expected: Mapping[str, tuple[str, int]]) -> dict[str, AttemptFacts]:
        if not expected:
            return {}
        there = {f"{job.spec.namespace}/{job.spec.name}" for job in self._jobs.values()}
        now = int(time.time())
        return {
            key: facts.describe_missing(self._cluster, key, job_id, attempt, now)
            for key, (job_id, attempt) in expected.items()
            if key not in there
        }

    # --- deciding ------------------------------------------------------------------------------------------------

    def _admit(self, snapshot: QueueSnapshot) -> None:
        """One round over all that wait, where anything has changed since the last one."""
        if snapshot is self._judged and not self._touched and not self._gone:
            return
        self._judged = snapshot
        waiting = [job for job in self._jobs.values() if not job.admitted and job.deleting_at is None]
        if not waiting:
            return
        waiting.sort(key=lambda job: (job.created_ns, job.key))
        holdings = [_holding(job) for job in self._jobs.values() if job.active_need]
        now = int(time.time())
        for verdict in decide(snapshot, holdings, [self._ask(job) for job in waiting]):
            job = self._jobs[verdict.key]
            old = job.workload.get("QuotaReserved")
            if old is not None and (old.reason, old.message) == (verdict.reason, verdict.message):
                continue
            at, admitted = max(now, job.created_at), verdict.flavors is not None
            note(job.workload, "QuotaReserved", status=admitted, reason=verdict.reason, message=verdict.message, at=at)
            if verdict.flavors is not None:
                said = "The workload is admitted"
                note(job.workload, "Admitted", status=True, reason="Admitted", message=said, at=at)
                job.flavors, job.started_at = dict(verdict.flavors), at
            self._touched.add(job.key)

    def _ask(self, job: JobRecord) -> Ask:
        """What a job asks for; worked out once, because nothing of it ever changes."""
        if job.key not in self._asks:
            spec = job.spec
            self._asks[job.key] = Ask(
                key=job.key,
                cluster_queue=spec.cluster_queue,
                requests=facts.requests_of(spec.work, spec.gpu_resource, job.parallelism),
                flavor=spec.work.flavor,
                node_selector=dict(spec.node_selector),
            )
        return self._asks[job.key]

    def _run_pods(self, snapshot: QueueSnapshot) -> None:
        """Make the pods that are due, give them devices, and start a runner for each that has what it needs."""
        flavors = {flavor.name: flavor for flavor in snapshot.flavors}
        devices = pools(snapshot, self._gpus)
        due = [job for job in self._jobs.values() if job.admitted and not job.over and job.deleting_at is None]
        due.sort(key=lambda job: (job.started_at or 0, job.created_ns))
        for job in due:
            self._make_pods(job)
            pool = devices.get(job.flavors.get(job.spec.gpu_resource, ""), ())
            for pod in job.active:
                if pod.scheduled_at is None:
                    self._give_devices(job, pod, pool)
        # Pods and their devices must be on file before anything runs, or a crash would give them out twice.
        self._save()
        for job in due:
            flavor = flavors.get(job.flavors.get(job.spec.gpu_resource, ""))
            for pod in job.active:
                waits = pod.scheduled_at is not None and pod.status.runner is None and not self._launcher.tried(pod)
                if waits and not self._launcher.alive(pod):
                    self._launcher.start(job, pod, flavor)

    def _make_pods(self, job: JobRecord) -> None:
        missing = min(job.parallelism - len(job.active), job.spec.work.runs - len(job.pods))
        if missing <= 0:
            return
        taken = {pod.index for pod in job.pods}
        free = (index for index in range(job.spec.work.runs) if index not in taken)
        job.pods += [_new_pod(job, index) for index, _ in zip(free, range(missing), strict=False)]
        self._touched.add(job.key)

    def _give_devices(self, job: JobRecord, pod: PodRecord, pool: tuple[str, ...]) -> None:
        """Reserve the pod's GPUs, and with them its place; nothing happens while too few are free."""
        count = job.spec.work.gpus
        if count:
            taken = {device for other in self._jobs.values() for held in other.active for device in held.devices}
            free = [device for device in pool if device not in taken]
            if len(free) < count:
                return
            pod.devices = free[:count]
        pod.scheduled_at = max(int(time.time()), pod.created_at)
        self._touched.add(job.key)

    # --- removing ------------------------------------------------------------------------------------------------

    def _delete(self, job: JobRecord) -> None:
        """End the pods of a job that shall go; once all have ended, let it go."""
        for pod in job.active:
            if pod.scheduled_at is None:
                job.pods.remove(pod)  # it never was anywhere
            elif self._launcher.alive(pod):
                self._launcher.stop(pod)
            else:
                self._close(job, pod)
        if not job.active:
            self._store.remove(job)
            self._let_go(job)

    def _let_go(self, job: JobRecord) -> None:
        self._gone[job.key] = facts.describe_gone(job, int(time.time()))
        del self._jobs[job.key]
        self._saved.pop(job.key, None)
        self._asks.pop(job.key, None)

    def _bury(self) -> None:
        """Now and then: end what runs without a job, remove what is left of jobs long gone."""
        if time.monotonic() - self._buried_at < BURY_EVERY:
            return
        self._buried_at = time.monotonic()
        known = {pod.uid for job in self._jobs.values() for pod in job.pods}
        for pod in self._launcher.orphans(known):
            logger.warning("pod %s belongs to no job and is ended", pod.uid)
            self._launcher.stop(pod)
        self._store.bury(known)

    def _save(self) -> None:
        for key in self._touched & self._jobs.keys():
            state = self._jobs[key].state()
            if self._saved.get(key) != state:
                self._store.save(self._jobs[key])
                self._saved[key] = state


def _holding(job: JobRecord) -> Holding:
    spec = job.spec
    requests = facts.requests_of(spec.work, spec.gpu_resource, job.active_need)
    return Holding(cluster_queue=spec.cluster_queue, requests=requests, flavors=job.flavors)


def _new_pod(job: JobRecord, index: int) -> PodRecord:
    name = f"{job.spec.name}-{index}" if job.spec.work.runs > 1 else job.spec.name
    return PodRecord(
        uid=str(uuid.uuid4()), name=f"{name}-{secrets.token_hex(3)[:5]}", index=index, created_at=int(time.time())
    )
