"""What the local backend will run, told as the Job that it stands for; secrets by name only."""

from typing import Any

from portal.clusters.specs import JobSpec

HIDDEN = "(hidden)"


def preview(spec: JobSpec) -> list[dict[str, Any]]:
    """The Job, and the Secret where the job has secret values."""
    shown = [_job(spec)]
    if spec.work.secret_env:
        shown.append(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": spec.name, "namespace": spec.namespace},
                "stringData": dict.fromkeys(spec.work.secret_env, HIDDEN),
            }
        )
    return shown


def _job(spec: JobSpec) -> dict[str, Any]:
    work = spec.work
    body: dict[str, Any] = {
        "suspend": True,
        "parallelism": work.at_once,
        "completions": work.runs,
    }
    body |= {"completionMode": "Indexed", "backoffLimitPerIndex": 0} if work.runs > 1 else {"backoffLimit": 0}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": spec.name,
            "namespace": spec.namespace,
            "labels": {"kueue.x-k8s.io/queue-name": spec.queue},
            "annotations": {
                "beamtime/runs-as": "processes of this machine, without a container: the image is not used",
                "beamtime/name": spec.display_name,
                "beamtime/team-name": spec.team,
                "beamtime/submitted-by": spec.submitted_by,
            },
        },
        "spec": {**body, "template": {"spec": _pod(spec)}},
    }


def _pod(spec: JobSpec) -> dict[str, Any]:
    work = spec.work
    amounts = {"cpu": f"{work.cpu_millicores}m", "memory": f"{work.memory_mib}Mi"}
    if work.gpus:
        amounts[spec.gpu_resource] = str(work.gpus)
    hidden = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": spec.name, "key": name}}} for name in work.secret_env
    ]
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "main",
                "image": work.image,
                "command": list(work.command),
                "args": list(work.args),
                "env": [*({"name": name, "value": value} for name, value in work.env), *hidden],
                "resources": {"requests": amounts, "limits": dict(amounts)},
            }
        ],
    }
    if work.flavor:
        pod["nodeSelector"] = dict(spec.node_selector) or {"beamtime/flavor": work.flavor}
    if work.time_limit_seconds is not None:
        pod["activeDeadlineSeconds"] = work.time_limit_seconds
    return pod
