"""What is known of every attempt: Jobs, Workloads and pods joined by the Job's name. No input or output in here."""

from collections.abc import Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple

from portal.clusters.kube import facts
from portal.clusters.kube.facts import Object
from portal.clusters.specs import AttemptFacts, JobFacts, PodFacts, WorkloadFacts
from portal.core.clock import now

Kind = Literal["jobs", "workloads", "pods"]
# (namespace, name of the Job)
Key = tuple[str, str]


class Suspect(NamedTuple):
    """An object that a list or a watch no longer shows: is it gone, or has it only lost our label?"""

    kind: Kind
    namespace: str
    name: str
    uid: str


@dataclass(slots=True)
class _Pod:
    facts: PodFacts
    version: int
    # End of the grace, once deletion was asked for.
    ends: datetime | None


@dataclass(slots=True)
class _Workload:
    facts: WorkloadFacts
    # A Workload on its way out counts less than any other, and an older one less than a younger.
    rank: tuple[bool, str]


@dataclass(slots=True)
class _Entry:
    job_id: str = ""
    attempt: int = 0
    job: JobFacts | None = None
    job_version: int = 0
    gone_at: datetime | None = None
    # By uid.
    workloads: dict[str, _Workload] = field(default_factory=dict)
    pods: dict[str, _Pod] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return self.gone_at is not None and all(pod.facts.gone for pod in self.pods.values())


class Cache:
    """Facts of all attempts. `dirty` names those that changed since they were last taken, the longest waiting first;
    its values are free for who takes."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._entries: dict[Key, _Entry] = {}
        self._homes: dict[tuple[Kind, str], Key] = {}
        self.dirty: dict[Key, float | None] = {}

    def __len__(self) -> int:
        return len(self._entries)

    # --- what comes in ---------------------------------------------------------------------------------------------

    def put(self, kind: Kind, thing: Object) -> None:
        """An object as it is now. Nothing happens if it is older than what is known of the same uid."""
        uid = facts.uid(thing)
        namespace, own_name = facts.place(thing)
        name = own_name if kind == "jobs" else facts.owning_job(thing)
        if not uid or not name:
            return
        key = (namespace, name)
        entry = self._entries.setdefault(key, _Entry())
        self._homes[kind, uid] = key
        if kind == "workloads":
            self._put_workload(entry, thing, uid)
        elif kind == "pods":
            self._put_pod(entry, thing, uid)
        else:
            self._put_job(entry, thing, uid)
        self._touch(key)

    def drop(self, kind: Kind, thing: Object) -> Suspect | None:
        """A DELETED event. The answer is a suspect where the event may mean less than a deletion.

        An object leaves a watch with a label selector in the same way when it loses the label. What Kubernetes deletes
        in two steps carries a deletion time; what it deletes at once carries none, and must be looked at.
        """
        namespace, name = facts.place(thing)
        uid = facts.uid(thing)
        if kind != "workloads":
            if facts.deletion(thing)[1] is None:
                return Suspect(kind, namespace, name, uid)
            self.put(kind, thing)
        self.vanished(kind, uid)
        return None

    def unlisted(self, kind: Kind, uids: Set[str]) -> list[Suspect]:
        """What was known and alive, and is not in a complete list of these uids."""
        missing = [uid for (which, uid) in self._homes if which == kind and uid not in uids]
        if kind == "workloads":
            for uid in missing:
                self.vanished(kind, uid)
            return []
        return [suspect for uid in missing if (suspect := self._suspect(kind, uid)) is not None]

    def vanished(self, kind: Kind, uid: str) -> None:
        """It is certain that this object does not exist any more."""
        key = self._homes.pop((kind, uid), None)
        entry = self._entries.get(key) if key is not None else None
        if key is None or entry is None:
            return
        if kind == "workloads":
            entry.workloads.pop(uid, None)
            if not entry.job_id and not entry.workloads:
                del self._entries[key]
                self.dirty.pop(key, None)
                return
        elif kind == "pods":
            pod = entry.pods[uid]
            # Seen late, after a gap, the end of the grace is the cluster's own word for when it went.
            at = min(now(), pod.ends) if pod.ends is not None else now()
            pod.facts = replace(pod.facts, gone=True, gone_at=at)
        elif entry.job is not None and entry.job.uid == uid:
            entry.gone_at = entry.gone_at or now()
        self._touch(key)

    def missing(self, key: Key, job_id: str, attempt: int) -> None:
        """It is certain that the Job that should be under this name does not exist."""
        entry = self._entries.setdefault(key, _Entry())
        entry.job_id, entry.attempt = entry.job_id or job_id, entry.attempt or attempt
        entry.gone_at = entry.gone_at or now()
        self._touch(key)

    # --- what goes out ---------------------------------------------------------------------------------------------

    def knows(self, key: Key) -> bool:
        """Whether a Job of this name was seen and is not known to be gone."""
        entry = self._entries.get(key)
        return entry is not None and entry.job is not None and entry.gone_at is None

    def take(self, key: Key) -> AttemptFacts | None:
        """The facts of one attempt as they are now; None while it is unknown whose it is.

        An attempt of which nothing is left in the cluster is forgotten with this.
        """
        self.dirty.pop(key, None)
        entry = self._entries.get(key)
        if entry is None or not entry.job_id:
            return None
        if entry.over:
            self._forget(key, entry)
        workload = max(entry.workloads.values(), key=lambda each: each.rank, default=None)
        return AttemptFacts(
            cluster=self._cluster,
            namespace=key[0],
            name=key[1],
            job_id=entry.job_id,
            attempt=entry.attempt,
            job=entry.job,
            job_gone=entry.gone_at is not None,
            gone_at=entry.gone_at,
            workload=workload.facts if workload is not None else None,
            pods=tuple(pod.facts for pod in entry.pods.values()),
        )

    # --- inside ----------------------------------------------------------------------------------------------------

    def _touch(self, key: Key) -> None:
        self.dirty.setdefault(key, None)

    def _put_job(self, entry: _Entry, thing: Object, uid: str) -> None:
        found, version = facts.job_facts(thing), facts.version(thing)
        if entry.job is not None and entry.job.uid == uid and version < entry.job_version:
            return
        if entry.job is not None and entry.job.uid != uid:
            self._homes.pop(("jobs", entry.job.uid), None)
        self._identify(entry, thing)
        entry.job, entry.job_version, entry.gone_at = found, version, None

    def _put_pod(self, entry: _Entry, thing: Object, uid: str) -> None:
        version, known = facts.version(thing), entry.pods.get(uid)
        if known is not None and (known.facts.gone or version < known.version):
            return
        self._identify(entry, thing)
        found = facts.pod_facts(thing)
        if known is not None and known.facts.deletion_requested_at is not None:
            # The kubelet's own last deletion, with a grace of 0, writes its moment over the first one's.
            found = replace(found, deletion_requested_at=known.facts.deletion_requested_at)
        entry.pods[uid] = _Pod(found, version, facts.deletion(thing)[1])

    def _put_workload(self, entry: _Entry, thing: Object, uid: str) -> None:
        created = facts.metadata(thing).get("creationTimestamp")
        rank = (facts.deletion(thing)[1] is None, str(created or ""))
        entry.workloads[uid] = _Workload(facts.workload_facts(thing), rank)

    @staticmethod
    def _identify(entry: _Entry, thing: Object) -> None:
        job_id, attempt = facts.whose(thing)
        if job_id:
            entry.job_id, entry.attempt = job_id, attempt

    def _suspect(self, kind: Kind, uid: str) -> Suspect | None:
        key = self._homes[kind, uid]
        entry = self._entries[key]
        if kind == "jobs":
            return Suspect(kind, *key, uid) if entry.gone_at is None else None
        pod = entry.pods[uid].facts
        return None if pod.gone else Suspect(kind, key[0], pod.name, uid)

    def _forget(self, key: Key, entry: _Entry) -> None:
        del self._entries[key]
        if entry.job is not None:
            self._homes.pop(("jobs", entry.job.uid), None)
        for uid in entry.pods:
            self._homes.pop(("pods", uid), None)
        for uid in entry.workloads:
            self._homes.pop(("workloads", uid), None)
