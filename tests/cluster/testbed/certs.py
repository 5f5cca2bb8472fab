"""One certificate authority per run, a key pair per component, a kubeconfig per user; made with the openssl command."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import NamedTuple

from .paths import NODE, Layout

_CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


class Subject(NamedTuple):
    """`subject` in openssl's form; the organisation is the Kubernetes group, the common name the user."""

    subject: str
    names: str


SUBJECTS = {
    "apiserver": Subject("/CN=kube-apiserver", "DNS:localhost,DNS:kubernetes,IP:127.0.0.1,IP:10.96.0.1"),
    "admin": Subject("/O=system:masters/CN=admin", "DNS:admin"),
    "controller-manager": Subject("/CN=system:kube-controller-manager", "DNS:localhost,IP:127.0.0.1"),
    "scheduler": Subject("/CN=system:kube-scheduler", "DNS:localhost,IP:127.0.0.1"),
    "kueue": Subject("/O=system:masters/CN=kueue", "DNS:localhost,IP:127.0.0.1"),
    "kubelet": Subject(f"/O=system:nodes/CN=system:node:{NODE}", f"DNS:{NODE},IP:127.0.0.1"),
    # The API server as a client: of the kubelet, and of aggregated APIs (where this very name must be an allowed one).
    "front": Subject("/O=system:masters/CN=front", "DNS:front"),
}
KUBECONFIGS = ("admin", "controller-manager", "scheduler", "kueue", "kubelet")


def make(layout: Layout, *, server: str) -> None:
    """Write authority, pairs, the key for service account tokens, and kubeconfig files that embed what they need."""
    certs = layout.certs
    certs.mkdir(parents=True)
    _openssl(
        certs,
        [
            "req",
            "-x509",
            *_CURVE,
            "-days",
            "30",
            "-keyout",
            "ca.key",
            "-out",
            "ca.crt",
            "-subj",
            "/CN=beamtime-testbed",
        ],
    )
    for name, subject in SUBJECTS.items():
        _openssl(certs, ["req", *_CURVE, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject.subject])
        (certs / f"{name}.ext").write_text(f"subjectAltName={subject.names}\n")
        sign = [
            "x509",
            "-req",
            "-in",
            f"{name}.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "30",
        ]
        _openssl(certs, [*sign, "-out", f"{name}.crt", "-extfile", f"{name}.ext"])
    _openssl(certs, ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", "accounts.key"])
    _openssl(certs, ["pkey", "-in", "accounts.key", "-pubout", "-out", "accounts.pub"])
    for user in KUBECONFIGS:
        path = layout.kubeconfig(user)
        path.write_text(json.dumps(_kubeconfig(certs, user, server), indent=1))
        path.chmod(0o600)


def inline(path: Path) -> str:
    """A file as the base64 text that Kubernetes objects want."""
    return base64.b64encode(path.read_bytes()).decode()


def _kubeconfig(certs: Path, user: str, server: str) -> dict[str, object]:
    pair = {"client-certificate-data": inline(certs / f"{user}.crt"), "client-key-data": inline(certs / f"{user}.key")}
    cluster = {"server": server, "certificate-authority-data": inline(certs / "ca.crt")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": cluster}],
        "users": [{"name": user, "user": pair}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
        "current-context": "testbed",
    }


def _openssl(directory: Path, arguments: list[str]) -> None:
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)
