"""Install Kueue around its process: resource definitions before it starts, webhooks and the visibility API after."""

from __future__ import annotations

from typing import Any

import yaml

from . import certs
from .components import Setting

# Kueue also has webhooks for kinds that are not installed here; these are the groups of its own objects and of plain
# Jobs.
GROUPS = {"kueue.x-k8s.io", "batch"}


def definitions(setting: Setting) -> None:
    """The resource definitions, established: Kueue exits at once when its kinds are missing."""
    kubectl = setting.kubectl
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    kubectl.run("apply", "--server-side", "--force-conflicts", "-f", f"{setting.builds.kubernetes}/crds")
    kubectl.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s", seconds=70)


def webhooks(setting: Setting) -> None:
    """Kueue's own webhook configurations, aimed at its port on loopback instead of at a Service that does not exist."""
    authority = certs.inline(setting.layout.certs / "ca.crt")
    base = f"https://127.0.0.1:{setting.ports['kueue-webhook']}"
    objects = []
    for item in yaml.safe_load_all((setting.builds.kubernetes / "webhooks.yaml").read_text()):
        item["metadata"]["name"] = f"kueue-{item['metadata']['name']}"
        item["webhooks"] = [_aimed(hook, base, authority) for hook in item["webhooks"] if _wanted(hook)]
        objects.append(item)
    setting.kubectl.apply(*objects)


def visibility(setting: Setting) -> None:
    """The API that tells a pending Workload's place, through the API server as in a real installation."""
    port = setting.ports["kueue-visibility"]
    service = {"name": "kueue-visibility-server", "namespace": "kueue-system"}
    setting.kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": service,
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1beta2.visibility.kueue.x-k8s.io"},
            "spec": {
                "group": "visibility.kueue.x-k8s.io",
                "version": "v1beta2",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {**service, "port": port},
            },
        },
    )


def _wanted(hook: dict[str, Any]) -> bool:
    return all(set(rule["apiGroups"]) <= GROUPS for rule in hook["rules"])


def _aimed(hook: dict[str, Any], base: str, authority: str) -> dict[str, Any]:
    path = hook["clientConfig"]["service"]["path"]
    return {**hook, "clientConfig": {"url": base + path, "caBundle": authority}}
