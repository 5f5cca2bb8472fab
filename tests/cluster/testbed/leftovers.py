"""End whatever a run of the testbed left on the machine, by the same way after a clean end and after a crash.

Only things that carry the testbed's mark are touched: processes that work below the run directory and were started
from our own cache, processes in the cgroups of its containers, mounts below the run directory.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .paths import Layout, TestbedError, cache_directory

CGROUPS = Path("/sys/fs/cgroup")


def processes(run: Path) -> list[int]:
    """Programs of ours that work below `run`: components without a record, and the shims of containers."""
    builds = str(cache_directory() / "builds") + "/"
    found = []
    for entry in _pids():
        with contextlib.suppress(OSError):
            program = str(Path(f"/proc/{entry}/exe").readlink()).removesuffix(" (deleted)")
            directory = str(Path(f"/proc/{entry}/cwd").readlink()).removesuffix(" (deleted)")
            if program.startswith(builds) and Path(directory).is_relative_to(run):
                found.append(entry)
    return found


def contained(layout: Layout) -> list[int]:
    """Processes inside containers of the testbed: the last part of their cgroup is the id of one of its containers."""
    ids = set(_container_ids(layout))
    found = []
    for entry in _pids() if ids else ():
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{entry}/cgroup").read_text().splitlines()
            if any(line.rsplit("/", 1)[-1] in ids for line in lines):
                found.append(entry)
    return found


def end(layout: Layout) -> None:
    """Kill all of them, containers first: a shim that dies first would leave its container to the init process.

    Raises TestbedError if something is still there after ten seconds.
    """
    searches: list[Callable[[], list[int]]] = [lambda: contained(layout), lambda: processes(layout.run)]
    for find in searches:
        deadline = time.monotonic() + 10
        while left := find():
            if time.monotonic() > deadline:
                raise TestbedError(f"processes {left} of an earlier run would not die; look at them with `ps`")
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def unmount(run: Path) -> None:
    """Take away every mount below `run`, the innermost first."""
    for point in sorted(_mounts(run), key=len, reverse=True):
        subprocess.run(["umount", "--lazy", point], capture_output=True, check=False)
    left = list(_mounts(run))
    if left:
        raise TestbedError(f"could not unmount {left[0]} and {len(left) - 1} more")


def remove_cgroups(layout: Layout) -> None:
    """Remove the containers' cgroups in every hierarchy, and what containerd put them into if nobody else uses it."""
    for hierarchy in (CGROUPS, *CGROUPS.glob("*")):
        group = hierarchy / "k8s.io"
        for place in (*(group / name for name in _container_ids(layout)), group):
            with contextlib.suppress(OSError):
                place.rmdir()


def remove_files(run: Path, *, keep: tuple[str, ...] = ()) -> None:
    """Empty the run directory but for the names in `keep`. Refuses while something is still mounted below it."""
    if list(_mounts(run)):
        raise TestbedError(f"something is still mounted below {run}")
    if run.is_dir():
        for entry in run.iterdir():
            if entry.name in keep:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def _mounts(run: Path) -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split()[4].encode().decode("unicode_escape")
        if Path(point).is_relative_to(run):
            yield point


def _container_ids(layout: Layout) -> list[str]:
    return [path.name for path in layout.containers.glob("*")]


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
