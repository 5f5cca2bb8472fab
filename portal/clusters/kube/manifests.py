"""What Beamtime writes into a cluster: pure functions from specs to Kubernetes objects as plain dicts.

Fields and their rules: https://kubernetes.io/docs/reference/kubernetes-api/ (batch/v1 Job, core/v1 Secret, Namespace,
ResourceQuota, networking.k8s.io/v1 NetworkPolicy) and Kueue's `kueue.x-k8s.io/v1beta2` LocalQueue.
"""

import base64
import math
import re
from collections.abc import Mapping
from typing import Any

from portal.clusters.specs import JobSpec, TeamSpace, WorkSpec
from portal.core.labels import label_value

Manifest = dict[str, Any]

KUEUE_API = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
INSTANCE_LABEL = "beamtime/instance"
JOB_LABEL = "beamtime/job"
ATTEMPT_LABEL = "beamtime/attempt"
DIGEST_LABEL = "beamtime/digest"
TEAM_LABEL = "beamtime/team"
NAME_ANNOTATION = "beamtime/name"
TEAM_ANNOTATION = "beamtime/team-name"
PERSON_ANNOTATION = "beamtime/submitted-by"
CONTAINER = "main"
FIELD_MANAGER = "beamtime"
HIDDEN = "(hidden)"

# A job that loops over submissions must not fill etcd for everybody; far above what a team has on purpose.
JOBS_PER_TEAM = 10_000
# Longest wait for a node or an image inside the safety deadline of the whole Job; Kueue itself takes an admitted Job
# back after 30 minutes without ready pods.
SLACK_SECONDS = 3600
# A Python program in a container writes to a pipe and would otherwise hold its lines back; a progress bar that
# rewrites itself ten times a second is only noise in a stored log.
FRIENDLY_ENV = (("PYTHONUNBUFFERED", "1"), ("TQDM_MININTERVAL", "1"))

# No rule at all for ingress: nobody opens a connection to a job's pods.
_NO_INGRESS: Manifest = {"podSelector": {}, "policyTypes": ["Ingress"]}
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def instance_value(instance: str) -> str:
    """The label value that marks this portal's objects: the setting itself where Kubernetes accepts it."""
    return instance if _LABEL_VALUE.fullmatch(instance) else label_value(instance)


def literal(text: str) -> str:
    """`text`, written so that the container receives it byte for byte.

    Kubernetes expands `$(NAME)` in env values, command and args and turns `$$` into `$`
    (k8s.io/kubernetes/third_party/forked/golang/expansion); with every `$` doubled nothing is left to expand.
    """
    return text.replace("$", "$$")


def job(spec: JobSpec, *, instance: str) -> Manifest:
    """The suspended batch/v1 Job of one attempt; Kueue unsuspends it."""
    work = spec.work
    who = identity(spec, instance=instance)
    body: Manifest = {
        "suspend": True,
        "parallelism": work.at_once,
        "completions": work.runs,
        # A replacement starts only when its predecessor has left the devices.
        "podReplacementPolicy": "Failed",
        "template": {"metadata": {"labels": who, "annotations": _annotations(spec)}, "spec": _pod(spec)},
    }
    if work.runs > 1:
        # Per index, so that one failed run does not end the others; the Job fails at the end if any of them did.
        body |= {"completionMode": "Indexed", "backoffLimitPerIndex": 0}
    else:
        body["backoffLimit"] = 0
    if work.time_limit_seconds is not None:
        body["activeDeadlineSeconds"] = _safety_deadline(work)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": spec.name,
            "namespace": spec.namespace,
            "labels": {**who, DIGEST_LABEL: spec.digest, QUEUE_LABEL: spec.queue},
            "annotations": _annotations(spec),
        },
        "spec": body,
    }


def identity(spec: JobSpec, *, instance: str) -> dict[str, str]:
    """The labels that say whose object this is; the same on the Job, its pods and its Secret."""
    return {
        "app.kubernetes.io/managed-by": "beamtime",
        INSTANCE_LABEL: instance_value(instance),
        JOB_LABEL: spec.job_id,
        ATTEMPT_LABEL: str(spec.attempt),
        TEAM_LABEL: label_value(spec.team),
    }


def secret(spec: JobSpec, values: Mapping[str, str] | None, *, owner_uid: str, instance: str) -> Manifest:
    """The Secret named like its Job and removed with it. `values` None shows names only, for a preview."""
    manifest: Manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "immutable": True,
        "metadata": {
            "name": spec.name,
            "namespace": spec.namespace,
            "labels": identity(spec, instance=instance),
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": spec.name, "uid": owner_uid}],
        },
    }
    if values is None:
        manifest["stringData"] = dict.fromkeys(spec.work.secret_env, HIDDEN)
    else:
        # Base64 of our own: a value that is wrong for the server can then never be echoed in its complaint.
        encoded = {name: base64.b64encode(values[name].encode()).decode() for name in spec.work.secret_env}
        manifest["data"] = encoded
    return manifest


def space(wanted: TeamSpace, *, instance: str) -> list[Manifest]:
    """Everything of a team's space in the order in which it must be applied: the namespace first."""
    labels = {
        "app.kubernetes.io/managed-by": "beamtime",
        INSTANCE_LABEL: instance_value(instance),
        TEAM_LABEL: label_value(wanted.team),
    }

    def inside(api: str, kind: str, name: str, spec: Manifest) -> Manifest:
        metadata = {"name": name, "namespace": wanted.namespace, "labels": labels}
        return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}

    namespace: Manifest = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": wanted.namespace,
            "labels": {**labels, "pod-security.kubernetes.io/enforce": "baseline"},
            "annotations": {TEAM_ANNOTATION: wanted.team},
        },
    }
    queues = [inside(KUEUE_API, "LocalQueue", name, {"clusterQueue": behind}) for name, behind in wanted.queues]
    return [
        namespace,
        inside("networking.k8s.io/v1", "NetworkPolicy", "beamtime-no-ingress", _NO_INGRESS),
        inside("v1", "ResourceQuota", "beamtime-jobs", {"hard": {"count/jobs.batch": str(JOBS_PER_TEAM)}}),
        *queues,
    ]


def _annotations(spec: JobSpec) -> dict[str, str]:
    """Texts for people who look with kubectl; annotations, unlike labels, take any text."""
    return {NAME_ANNOTATION: spec.display_name, TEAM_ANNOTATION: spec.team, PERSON_ANNOTATION: spec.submitted_by}


def _safety_deadline(work: WorkSpec) -> int:
    """Seconds for the whole Job. Each pod has the time limit itself; this one acts where a kubelet no longer does.

    Ended by its own limit, a pod stays with its reason and its log; ended by the Job's, Kubernetes deletes it. So the
    Job's is the later one: as many waves of runs as there are, and room for nodes and images.
    """
    waves = math.ceil(work.runs / work.at_once)
    return waves * (work.time_limit_seconds or 0) + SLACK_SECONDS


def _pod(spec: JobSpec) -> Manifest:
    work = spec.work
    amounts = {"cpu": f"{work.cpu_millicores}m", "memory": f"{work.memory_mib}Mi"}
    if work.gpus:
        amounts[spec.gpu_resource] = str(work.gpus)
    container: Manifest = {
        "name": CONTAINER,
        "image": work.image,
        "command": [literal(word) for word in work.command],
        "args": [literal(word) for word in work.args],
        "env": _env(spec),
        "resources": {"requests": amounts, "limits": dict(amounts)},
        # As much as an image that runs as root and installs its packages can bear.
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["NET_RAW"]}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108
    }
    pod: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        # The runtime's own /dev/shm has 64 MiB, too little for PyTorch's data loaders; counted as the pod's memory.
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    if spec.node_selector:
        pod["nodeSelector"] = dict(spec.node_selector)
    if work.time_limit_seconds is not None:
        pod["activeDeadlineSeconds"] = work.time_limit_seconds
    return pod


def _env(spec: JobSpec) -> list[Manifest]:
    work = spec.work
    forced: dict[str, str] = {}
    if not work.gpus:
        # NVIDIA's container runtime otherwise shows every GPU of the node to an image that asks for all of them.
        forced["NVIDIA_VISIBLE_DEVICES"] = "void"
    if work.runs == 1:
        # Kubernetes sets it in an array only; the same script runs in both.
        forced["JOB_COMPLETION_INDEX"] = "0"
    given = {name for name, _ in work.env} | set(work.secret_env)
    plain = [
        *((name, value) for name, value in FRIENDLY_ENV if name not in given),
        *((name, value) for name, value in work.env if name not in forced),
        *forced.items(),
    ]
    hidden = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": spec.name, "key": name}}} for name in work.secret_env
    ]
    return [{"name": name, "value": literal(value)} for name, value in plain] + hidden
