"""What is stored of a log while its reader is cut fifty times and killed ten times, and its file rotated meanwhile."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.bench import logsite
from tests.bench.context import Bench
from tests.bench.kube import KubeSite
from tests.bench.table import Row
from tests.cluster.gated import Gated, numbered, under_fire
from tests.cluster.line import Line

FILE_BYTES = 128 * 1024
EACH_FILE = 2


def measure(bench: Bench) -> list[Row]:
    """One row."""
    site = bench.kube()
    cuts, kills = bench.count(50, 4), bench.count(10, 2)
    limits = {"containerLogMaxSize": str(FILE_BYTES), "containerLogMaxFiles": 3, "containerLogMonitorInterval": "3s"}
    folder = bench.fresh("logcut")
    folder.mkdir()
    with logsite.kubelet(site, **limits), Line(site.kubeconfig("watch"), folder).open() as line:
        changes = {"BEAMTIME_CLUSTER_KUBECONFIG": str(line.kubeconfig), "BEAMTIME_LEASE": "3"}
        changes["BEAMTIME_LOG_FILE_BYTES"] = str(FILE_BYTES)
        with logsite.watch(site, **changes):
            pod = Gated(site, site.client(), file_bytes=FILE_BYTES)
            pod.begin()
            bench.say(f"{cuts} cuts and {kills} kills of the reader")

            def kill() -> None:
                site.kill("watch")
                site.start("watch", **changes)

            with uncut(site, pod.where, folder / "kubectl.log") as plain:
                seen = under_fire(pod, line, kill, cuts=cuts, kills=kills, each_file=EACH_FILE)
                kept = pod.finish()
    expected = numbered(pod.allowed)
    lost, doubled = compared(kept.text, expected)
    digest = hashlib.sha256(expected).hexdigest()
    equal = hashlib.sha256(kept.text).hexdigest() == kept.stream["sha256"] == digest
    gaps = len(kept.stream["gaps"])
    plain_lost, plain_doubled = compared(without_times(plain.read_bytes()), expected)
    return [
        Row(
            f"stored text against what the pod wrote: {seen.cuts} cuts, {seen.kills} watchers killed, "
            f"{pod.rotations} rotations",
            "equal, digest equal; 0 lost, 0 doubled",
            f"{'equal, digest equal' if equal else '**not equal**'}; {lost} lost, {doubled} doubled of "
            f"{pod.allowed:,} lines, {gaps} gaps declared ({seen.amid} of {seen.cuts + seen.kills} accidents while "
            "lines were on their way)",
            equal and (lost, doubled, gaps) == (0, 0, 0),
            f"`kubectl logs -f --timestamps`, never cut: {plain_lost} lost, {plain_doubled} doubled",
        )
    ]


@contextlib.contextmanager
def uncut(site: KubeSite, where: tuple[str, ...], into: Path) -> Iterator[Path]:
    """`kubectl logs -f --timestamps` beside it, with a line of its own; ends with the log."""
    with kubectl(site, "logs", "-f", "--timestamps", *where, into=into) as program:
        yield into
        program.wait(60)


@contextlib.contextmanager
def kubectl(
    site: KubeSite, *words: str, into: Path, kubeconfig: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A kubectl that runs on, its output appended to a file; ended with the body."""
    command = [site.cluster.program, "--kubeconfig", str(kubeconfig or site.cluster.kubeconfig), *words]
    with into.open("ab") as file:
        program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL)
    try:
        yield program
    finally:
        program.kill()
        program.wait()


def without_times(text: bytes) -> bytes:
    """What `--timestamps` shows, without them."""
    return b"".join(line.partition(b" ")[2] for line in text.splitlines(keepends=True))


def compared(text: bytes, expected: bytes) -> tuple[int, int]:
    """(lines lost, lines doubled)."""
    lines = text.splitlines()
    there = set(lines)
    return len(set(expected.splitlines()) - there), len(lines) - len(there)
