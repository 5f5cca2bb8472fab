"""The synchronous deeds: make and remove an attempt's objects, bring a team's space in step, read the queues."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from portal.clusters.kube import manifests
from portal.clusters.kube.connection import Answer, Connection
from portal.clusters.kube.facts import job_facts, labels, metadata, uid
from portal.clusters.kube.queues import snapshot
from portal.clusters.kube.refusals import refusal
from portal.clusters.kube.values import mapping, text
from portal.clusters.specs import (
    Created,
    JobSpec,
    NameTaken,
    ObjectRef,
    PassingError,
    PermanentError,
    QueueSnapshot,
    SpaceMissing,
    TeamSpace,
)

APPLY = "application/apply-patch+yaml"
PAGE = "500"
_OURS = (manifests.INSTANCE_LABEL, manifests.JOB_LABEL, manifests.ATTEMPT_LABEL, manifests.DIGEST_LABEL)
_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "LocalQueue": f"/apis/{manifests.KUEUE_API}/namespaces/{{}}/localqueues",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Pod": "/api/v1/namespaces/{}/pods",
}


def path(kind: str, namespace: str = "", name: str = "") -> str:
    """Where objects of a kind live in the API, or one of them."""
    folder = _PATHS[kind].format(quote(namespace, safe=""))
    return f"{folder}/{quote(name, safe='')}" if name else folder


class Writer:
    """Every call is bounded by the connection's time-outs; all of them may be made from many threads at once."""

    def __init__(self, connection: Connection, *, instance: str) -> None:
        self._connection = connection
        self._instance = instance

    # --- a team's space --------------------------------------------------------------------------------------------

    def provision(self, space: TeamSpace) -> None:
        """Namespace, LocalQueues, NetworkPolicy and the count limit by server-side apply; repeats change nothing.

        Raises `PassingError`, `PermanentError` (also for a namespace of another portal).
        """
        answer = self._connection.call("GET", path("Namespace", name=space.namespace))
        if answer.status == 200:
            self._check_namespace(answer.json(), space.namespace)
        elif answer.status != 404:
            raise refusal(answer, f"show the namespace {space.namespace}")
        for manifest in manifests.space(space, instance=self._instance):
            self._apply(manifest)

    def _check_namespace(self, found: dict[str, Any], name: str) -> None:
        owner = text(labels(found).get(manifests.INSTANCE_LABEL))
        if owner and owner != manifests.instance_value(self._instance):
            raise PermanentError("NamespaceTaken", f"The namespace {name} belongs to another portal, {owner}.")
        if mapping(found.get("status")).get("phase") == "Terminating":
            raise PassingError(f"The namespace {name} is being deleted.")

    def _apply(self, manifest: manifests.Manifest) -> None:
        about, kind = manifest["metadata"], manifest["kind"]
        where = path(kind, about.get("namespace", ""), about["name"])
        query = {"fieldManager": manifests.FIELD_MANAGER, "force": "true"}
        answer = self._connection.call("PATCH", where, query=query, body=manifest, content_type=APPLY)
        if answer.status == 404 and kind == "LocalQueue":
            # The namespace is there, so it is the kind that is missing; jobs wait until an operator has mended that.
            raise PassingError(f"The cluster knows no LocalQueue: is Kueue installed, with {manifests.KUEUE_API}?")
        if answer.status not in {200, 201}:
            raise refusal(answer, f"apply the {kind} {about['name']}")

    # --- an attempt ------------------------------------------------------------------------------------------------

    def create(self, spec: JobSpec, secrets: Mapping[str, str]) -> Created:
        """The attempt's Job, suspended, then its Secret; what is there already with our labels is adopted.

        The Secret comes second because it is owned by the Job; a process that dies in between is made up for by the
        repeat, which adopts the Job and makes the Secret. A pod waits for its Secret, so nothing runs without it.

        Raises `PassingError`, `PermanentError`, `NameTaken`, `SpaceMissing`.
        """
        missing = sorted(set(spec.work.secret_env) - set(secrets))
        if missing:
            raise PermanentError("SecretMissing", f"No value is known for the secret {', '.join(missing)}.")
        manifest = manifests.job(spec, instance=self._instance)
        answer = self._connection.call("POST", path("Job", spec.namespace), body=manifest)
        if _exists(answer):
            created = self._adopt(spec)
        elif answer.status in {200, 201, 202}:
            created = _created(answer.json(), adopted=False)
        else:
            raise self._why_not(answer, spec)
        if spec.work.secret_env:
            self._create_secret(spec, secrets, owner=created.uid)
        return created

    def _adopt(self, spec: JobSpec) -> Created:
        answer = self._connection.call("GET", path("Job", spec.namespace, spec.name))
        if answer.status == 404:
            raise PassingError(f"The Job {spec.name} was there a moment ago and is gone.")
        if answer.status != 200:
            raise refusal(answer, f"show the Job {spec.name}")
        found = answer.json()
        ours = manifests.job(spec, instance=self._instance)["metadata"]["labels"]
        if any(labels(found).get(key) != ours[key] for key in _OURS):
            raise NameTaken("NameTaken", f"A Job named {spec.name} exists in {spec.namespace} and is not this one.")
        return _created(found, adopted=True)

    def _create_secret(self, spec: JobSpec, secrets: Mapping[str, str], *, owner: str) -> None:
        manifest = manifests.secret(spec, secrets, owner_uid=owner, instance=self._instance)
        answer = self._connection.call("POST", path("Secret", spec.namespace), body=manifest)
        # It exists from an earlier try of ours: nobody else makes this name, and the portal may not read Secrets.
        if answer.status in {200, 201, 202} or _exists(answer):
            return
        error = refusal(answer, "keep the job's secrets", secretive=True)
        if isinstance(error, PermanentError):
            # Half a job must not stay: its pods would wait for the Secret for ever.
            self.delete(ObjectRef(cluster=spec.cluster, namespace=spec.namespace, name=spec.name, uid=owner))
        raise error

    @staticmethod
    def _why_not(answer: Answer, spec: JobSpec) -> Exception:
        said = text(answer.json().get("message"))
        if answer.status == 404:
            return SpaceMissing(f"The namespace {spec.namespace} is not there: {said}")
        if 400 <= answer.status < 500 and "localqueue" in said.lower() and ("not found" in said or "exist" in said):
            return SpaceMissing(f"The LocalQueue {spec.queue} is not there: {said}")
        return refusal(answer, "create the Job")

    def delete(self, ref: ObjectRef) -> bool:
        """Ask for the Job and its pods to go. True once neither is left: pods that still end still hold their GPUs.

        Without a known uid the object is looked at first, so that a stranger of the same name is left alone.

        Raises `PassingError`, `PermanentError`.
        """
        where = path("Job", ref.namespace, ref.name)
        known = ref.uid or self._uid_of_ours(where)
        if not known:
            return self._no_pods(ref, f"batch.kubernetes.io/job-name={ref.name}")
        body = {"propagationPolicy": "Background", "preconditions": {"uid": known}}
        answer = self._connection.call("DELETE", where, body=body)
        # 409: an object made later has the name; ours is gone.
        if answer.status not in {200, 202, 404, 409}:
            raise refusal(answer, f"delete the Job {ref.name}")
        if answer.status in {200, 202} and self._still_there(where, known):
            return False
        return self._no_pods(ref, f"batch.kubernetes.io/controller-uid={known}")

    def _uid_of_ours(self, where: str) -> str:
        answer = self._connection.call("GET", where)
        if answer.status == 404:
            return ""
        if answer.status != 200:
            raise refusal(answer, "show the Job")
        found = answer.json()
        ours = labels(found).get(manifests.INSTANCE_LABEL) == manifests.instance_value(self._instance)
        return uid(found) if ours else ""

    def _still_there(self, where: str, known: str) -> bool:
        answer = self._connection.call("GET", where)
        return answer.status == 200 and uid(answer.json()) == known

    def _no_pods(self, ref: ObjectRef, selector: str) -> bool:
        selector = f"{manifests.INSTANCE_LABEL}={manifests.instance_value(self._instance)},{selector}"
        query = {"labelSelector": selector, "limit": "1"}
        answer = self._connection.call("GET", path("Pod", ref.namespace), query=query)
        if answer.status != 200:
            raise refusal(answer, f"list the pods of {ref.name}")
        return not answer.json().get("items")

    # --- queues ----------------------------------------------------------------------------------------------------

    def read_queues(self) -> QueueSnapshot:
        """ClusterQueues and ResourceFlavors as they are now. Raises `PassingError`, `PermanentError`."""
        group = f"/apis/{manifests.KUEUE_API}"
        return snapshot(self._all(f"{group}/clusterqueues"), self._all(f"{group}/resourceflavors"))

    def _all(self, where: str) -> Iterator[dict[str, Any]]:
        query = {"limit": PAGE}
        while True:
            answer = self._connection.call("GET", where, query=query)
            if answer.status == 404:
                raise PassingError(
                    f"The cluster knows no ClusterQueue: is Kueue installed, with {manifests.KUEUE_API}?"
                )
            if answer.status != 200:
                raise refusal(answer, f"list {where.rpartition('/')[2]}")
            page = answer.json()
            yield from (item for item in page.get("items") or [] if isinstance(item, dict))
            more = text(metadata(page).get("continue"))
            if not more:
                return
            query = {"limit": PAGE, "continue": more}


def _exists(answer: Answer) -> bool:
    return answer.status == 409 and answer.json().get("reason") == "AlreadyExists"


def _created(found: Mapping[str, Any], *, adopted: bool) -> Created:
    facts = job_facts(found)
    return Created(uid=facts.uid, created_at=facts.created_at, adopted=adopted)
