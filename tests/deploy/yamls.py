"""The files of deploy/, read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
BASE = DEPLOY / "kubernetes" / "base"


def objects() -> Iterator[dict[str, Any]]:
    """Every object of the Kustomize base."""
    kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    for name in kustomization["resources"]:
        yield from yaml.safe_load_all((BASE / name).read_text())


def one(kind: str, name: str) -> dict[str, Any]:
    """The object of this kind and name."""
    [found] = [each for each in objects() if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


def pods() -> dict[str, dict[str, Any]]:
    """Pod specs by the name of what makes them."""
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in objects()
        if each["kind"] in {"Deployment", "Job"}
    }
