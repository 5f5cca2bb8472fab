"""Nodes: GPUs that the real one pretends to have, and whole nodes that kwok pretends."""

from __future__ import annotations

import json
from typing import Any

from .kubectl import Kubectl
from .paths import NODE

# Pods without this toleration never land on a pretended node, where they would "succeed" without having run.
KWOK_TAINT = {"key": "beamtime.test/fake", "value": "true", "effect": "NoSchedule"}
KWOK_LABELS = {"beamtime.test/node-kind": "kwok"}


def give_gpus(kubectl: Kubectl, count: int) -> None:
    """Write an extended resource into the node's status, the documented way to have one without a device plugin."""
    amount = {"nvidia.com/gpu": str(count)}
    patch = json.dumps({"status": {"capacity": amount, "allocatable": amount}})
    kubectl.run("patch", "node", NODE, "--subresource=status", "--type=merge", "-p", patch)


def gpus(kubectl: Kubectl) -> int:
    """How many the node offers."""
    node = kubectl.json("get", "node", NODE)
    return int(node["status"]["allocatable"].get("nvidia.com/gpu", 0))


def kwok_node(number: int, *, count: int) -> dict[str, Any]:
    """A pretended node with 64 CPUs, 512 GiB and `count` GPUs."""
    size = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(count)}
    name = f"kwok-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {**KWOK_LABELS, "kubernetes.io/hostname": name},
        },
        "spec": {"taints": [KWOK_TAINT]},
        "status": {"capacity": size, "allocatable": size},
    }
