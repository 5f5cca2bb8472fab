"""Compile the programs and make the images of the testbed, outside the checkout, and only what is not there yet.

Each part lies in `<cache>/builds/<part>-<key>/`, where the key is a digest of everything that decides the result: the
Go module with its sums, the recipe, the compiler. A new version therefore compiles beside the old one, and two
checkouts can share a cache. A part is built under another name and renamed when whole, so a folder with the right
name is a finished one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import images
from .paths import SOURCES, TestbedError, cache_directory

Say = Callable[[str], None]
KUBERNETES = "k8s.io/kubernetes"
KUEUE = "sigs.k8s.io/kueue"
KWOK = "sigs.k8s.io/kwok"
CONTAINERD = "github.com/containerd/containerd/v2"
# kwok's own stages for nodes that look alive and pods that run and end at once.
STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)


@dataclass(frozen=True)
class Builds:
    """The finished parts, each a folder."""

    kubernetes: Path
    containerd: Path
    kwok: Path
    collector: Path
    images: Path

    def program(self, name: str) -> str:
        """The path of a compiled program.

        Raises KeyError if no part has it.
        """
        for part in (self.kubernetes, self.containerd, self.kwok, self.collector):
            if (part / "bin" / name).exists():
                return str(part / "bin" / name)
        raise KeyError(name)


def ensure(say: Say) -> Builds:
    """All parts, compiled if need be. Only one build at a time: a second caller waits for the first.

    Raises TestbedError with the compiler's last lines.
    """
    root = cache_directory() / "builds"
    root.mkdir(parents=True, exist_ok=True)
    with _only_one(root / "lock", say):
        return Builds(
            kubernetes=_part(
                root, "kubernetes", _kubernetes, say, hint="about 6 minutes on two cores with an empty Go cache"
            ),
            containerd=_part(root, "containerd", _containerd, say, hint="about a minute"),
            kwok=_part(root, "kwok", _kwok, say, hint="about a minute"),
            collector=_part(root, "collector", _collector, say, hint="about two minutes"),
            images=_images(root, say),
        )


def version(module: str, path: str) -> str:
    """The version that `go/<module>/go.mod` requires of a module path, such as `v1.36.3`."""
    text = (SOURCES / module / "go.mod").read_text()
    found = re.search(rf"^\s*(?:require )?{re.escape(path)} (v\S+)", text, re.MULTILINE)
    if found is None:
        raise TestbedError(f"go/{module}/go.mod does not require {path}")
    return found[1]


def _kubernetes(target: Path) -> None:
    release = version("kubernetes", KUBERNETES)
    major, minor = release.removeprefix("v").split(".")[:2]
    base = "k8s.io/component-base/version"
    stamps = [f"{base}.gitVersion={release}", f"{base}.gitMajor={major}", f"{base}.gitMinor={minor}"]
    stamps.append(f"{KUEUE}/pkg/version.GitVersion={version('kubernetes', KUEUE)}")
    flags = "-s -w " + " ".join(f"-X {stamp}" for stamp in stamps)
    source = SOURCES / "kubernetes"
    # Compiling etcd into the folder, as the others, would name it after the last part of its path: "server".
    _go(source, ["build", "-ldflags", flags, "-o", f"{target}/bin/etcd", "go.etcd.io/etcd/server/v3"])
    commands = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"]
    packages = [f"{KUBERNETES}/cmd/{command}" for command in commands]
    _go(source, ["build", "-ldflags", flags, "-o", f"{target}/bin/", *packages, f"{KUEUE}/cmd/kueue"])
    kueue = _module_folder(source, KUEUE)
    shutil.copytree(kueue / "config/components/crd/bases", target / "crds", copy_function=shutil.copyfile)
    shutil.copyfile(kueue / "config/components/webhook/manifests.yaml", target / "webhooks.yaml")


def _containerd(target: Path) -> None:
    packages = [f"{CONTAINERD}/cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")]
    flags = ["-tags", "no_btrfs no_zfs no_devmapper", "-ldflags", "-s -w", "-o", f"{target}/bin/"]
    _go(SOURCES / "containerd", ["build", *flags, *packages], cgo=False)


def _kwok(target: Path) -> None:
    source = SOURCES / "kwok"
    _go(source, ["build", "-ldflags", "-s -w", "-o", f"{target}/bin/", f"{KWOK}/cmd/kwok"])
    stages = _module_folder(source, KWOK) / "kustomize" / "stage"
    (target / "stages.yaml").write_text("\n---\n".join((stages / name).read_text() for name in STAGES))


def _collector(target: Path) -> None:
    """The sources were made by the collector's own builder from `builder.yaml` beside them."""
    _go(SOURCES / "collector", ["build", "-ldflags", "-s -w", "-o", f"{target}/bin/collector", "."], cgo=False)


def _images(root: Path, say: Say) -> Path:
    key = _digest(
        [SOURCES / "pause" / "main.go", *Path(__file__).parent.glob("*image*.py")], images.fingerprint(), _compiler()
    )
    target = root / f"images-{key}"

    def make(part: Path) -> None:
        _go(SOURCES / "pause", ["build", "-ldflags", "-s -w", "-o", f"{part}/pause", "main.go"], cgo=False)
        images.make_all(part, pause=part / "pause")

    return _finished(target, make, say, what="the images", hint="some seconds")


def _part(root: Path, name: str, recipe: Callable[[Path], None], say: Say, *, hint: str) -> Path:
    source = SOURCES / name
    key = _digest([source / "go.mod", source / "go.sum", Path(__file__)], _compiler())
    return _finished(root / f"{name}-{key}", recipe, say, what=f"{name} from its Go modules", hint=hint)


def _finished(target: Path, recipe: Callable[[Path], None], say: Say, *, what: str, hint: str) -> Path:
    if target.is_dir():
        os.utime(target)
        return target
    _forget_the_old(target)
    say(f"building {what} ({hint})")
    began = time.monotonic()
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    recipe(part)
    part.rename(target)
    say(f"built {what} in {time.monotonic() - began:.0f} s")
    return target


def _forget_the_old(target: Path) -> None:
    """Delete other versions of a part that nobody has used for two weeks; one of all parts together is 0.7 GB."""
    name = target.name.rsplit("-", 1)[0]
    for other in target.parent.glob(f"{name}-*"):
        if time.time() - other.stat().st_mtime > 14 * 24 * 3600:
            shutil.rmtree(other, ignore_errors=True)


def _digest(files: list[Path], *texts: str) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    for text in texts:
        digest.update(text.encode())
    return digest.hexdigest()[:12]


def _compiler() -> str:
    return subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout.strip()


def _module_folder(source: Path, path: str) -> Path:
    return Path(_go(source, ["list", "-m", "-f", "{{.Dir}}", path]).strip())


def _go(source: Path, arguments: list[str], *, cgo: bool = True) -> str:
    # Read-only: what is compiled is what the committed go.sum says, or nothing. A workspace file further up must not
    # mix in.
    environment = {**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}
    if not cgo:
        environment["CGO_ENABLED"] = "0"
    done = subprocess.run(["go", *arguments], cwd=source, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TestbedError(f"go {' '.join(arguments[:1])} in {source} failed:\n{done.stderr[-3000:]}")
    return done.stdout


@contextmanager
def _only_one(path: Path, say: Say) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build of the testbed")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
