"""The rights that deploy/kubernetes gives the portal, and kubeconfigs that have exactly these."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .testbed.cluster import Cluster

BASE = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes" / "base"
_RIGHTS = frozenset(
    {"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    | {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
)
# Longer than any run of the tests; the portal's own reading of new tokens is tested elsewhere.
LIFETIME = "3h"


@dataclass(frozen=True)
class Account:
    """A ServiceAccount of the base."""

    namespace: str
    name: str


class Base:
    """The rendered Kustomize base."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        rendered = cluster.kubectl("kustomize", str(BASE))
        self.objects: list[dict[str, Any]] = [each for each in yaml.safe_load_all(rendered) if each]

    def apply_rights(self) -> None:
        """Accounts, roles, bindings and policies, as they are written in the base; nothing that would run."""
        chosen = [each for each in self.objects if each["kind"] in _RIGHTS]
        # The namespace of the accounts must be there before what lies in it.
        self._cluster.apply(*sorted(chosen, key=lambda each: each["kind"] != "Namespace"))

    def account_of(self, process: str) -> Account | None:
        """The account under which a process of the portal runs; None if its pods get no token at all."""
        for each in self.objects:
            if each["kind"] in {"Deployment", "StatefulSet"} and process in each["metadata"]["name"].split("-"):
                pod = each["spec"]["template"]["spec"]
                account = Account(each["metadata"]["namespace"], pod.get("serviceAccountName", "default"))
                return account if self._gets_token(pod, account) else None
        raise LookupError(f"the base has no workload for {process}")

    def _gets_token(self, pod: dict[str, Any], account: Account) -> bool:
        own = next(
            (
                each
                for each in self.objects
                if each["kind"] == "ServiceAccount"
                and (each["metadata"]["namespace"], each["metadata"]["name"]) == (account.namespace, account.name)
            ),
            {},
        )
        return bool(pod.get("automountServiceAccountToken", own.get("automountServiceAccountToken", True)))


def kubeconfig(cluster: Cluster, account: Account, path: Path) -> Path:
    """Write a kubeconfig that is this account and nobody else."""
    token = cluster.kubectl("create", "token", account.name, "-n", account.namespace, f"--duration={LIFETIME}").strip()
    config = yaml.safe_load(cluster.kubectl("config", "view", "--raw", "--minify", "--flatten"))
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path
