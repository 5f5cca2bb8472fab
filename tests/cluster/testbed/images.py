"""Container images without a builder and without a registry: OCI archives of one layer, written by hand.

`registry.test` is a name that no server can ever have (RFC 6761), so an image that was not imported fails to pull as
it would anywhere.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from . import python_image

REGISTRY = "registry.test"
PAUSE = f"{REGISTRY}/pause:1"
BUSYBOX = f"{REGISTRY}/busybox:1"
PYTHON = f"{REGISTRY}/python:3"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass
class Tree:
    """The files of an image: path inside it (without a leading slash) to what stands there."""

    files: dict[str, tuple[Path | bytes, int]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    directories: dict[str, int] = field(default_factory=dict)

    def file(self, path: str, content: Path | bytes, mode: int = 0o644) -> None:
        self.files[path] = (content, mode)

    def layer(self) -> bytes:
        """An uncompressed tar, the same bytes for the same content: sorted, owned by root, without times."""
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as tar:
            for path in sorted({*self._parents(), *self.directories}):
                entry = tarfile.TarInfo(path)
                entry.type, entry.mode = tarfile.DIRTYPE, self.directories.get(path, 0o755)
                tar.addfile(entry)
            for path, (content, mode) in sorted(self.files.items()):
                data = content.read_bytes() if isinstance(content, Path) else content
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(data), mode
                tar.addfile(entry, io.BytesIO(data))
            for path, target in sorted(self.links.items()):
                entry = tarfile.TarInfo(path)
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
                tar.addfile(entry)
        return whole.getvalue()

    def _parents(self) -> set[str]:
        found: set[str] = set()
        for path in (*self.files, *self.links, *self.directories):
            found.update(str(parent) for parent in Path(path).parents if str(parent) != ".")
        return found


def write(archive: Path, reference: str, tree: Tree, *, command: list[str]) -> None:
    """Write an image as an OCI archive for `ctr images import`; `command` is what runs when a pod names nothing."""
    layer = tree.layer()
    packed = gzip.compress(layer, 1, mtime=0)
    config = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Cmd": command, "Env": [f"PATH={PATH}", "LANG=C.UTF-8"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    settings = json.dumps(config).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, settings),
            "layers": [_descriptor(_LAYER, packed)],
        }
    ).encode()
    names = {"io.containerd.image.name": reference, "org.opencontainers.image.ref.name": reference.rsplit(":", 1)[1]}
    index = {"schemaVersion": 2, "manifests": [{**_descriptor(_MANIFEST, manifest), "annotations": names}]}
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode()}
    files |= {"blobs/sha256/" + _digest(blob).removeprefix("sha256:"): blob for blob in (settings, manifest, packed)}
    with tarfile.open(archive, "w") as tar:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def make_all(folder: Path, *, pause: Path) -> None:
    """The three images of the testbed, as `<folder>/<name>.tar`."""
    tree = Tree()
    tree.file("pause", pause, 0o755)
    write(folder / "pause.tar", PAUSE, tree, command=["/pause"])
    write(folder / "busybox.tar", BUSYBOX, _system(), command=["sh"])
    tree = _system()
    tree.links["usr/local/bin/python3"] = tree.links["usr/local/bin/python"] = python_image.NAME
    with tempfile.TemporaryDirectory() as workshop:
        for path, content, mode in python_image.files(Path(workshop)):
            tree.file(path, content, mode)
        write(folder / "python.tar", PYTHON, tree, command=["python3"])


def fingerprint() -> str:
    """Changes when the programs change from which the images are made."""
    made_from = (_busybox(), python_image.interpreter())
    return json.dumps([[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in made_from])


def _system() -> Tree:
    """The least that a shell script expects: busybox under all its names, /tmp, users."""
    tree = Tree()
    tree.file("bin/busybox", _busybox(), 0o755)
    listed = subprocess.run([str(_busybox()), "--list"], capture_output=True, text=True, check=True).stdout.split()
    tree.links.update({f"bin/{name}": "busybox" for name in listed if name != "busybox"})
    tree.links["usr/bin/env"] = "../../bin/busybox"
    tree.directories.update({"tmp": 0o1777, "root": 0o700, "home/user": 0o777, "var/tmp": 0o1777})
    tree.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n")
    tree.file("etc/group", b"root:x:0:\nuser:x:1000:\n")
    return tree


def _busybox() -> Path:
    found = shutil.which("busybox")
    if found is None:
        raise FileNotFoundError("busybox")
    return Path(found).resolve()


def _descriptor(kind: str, data: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(data), "size": len(data)}


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()
