"""End whatever a run of the testbed left on the machine, by the same way after a clean end and after a crash.

Only things that carry the testbed's mark are touched: processes that work below the run directory and were started
from our own cache, processes in the testbed's cgroup, mounts below the run directory.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from .paths import CGROUP, TestbedError, cache_directory

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


def contained() -> list[int]:
    """Processes inside containers of the testbed, told by their cgroup."""
    found = []
    for entry in _pids():
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{entry}/cgroup").read_text().splitlines()
            if any(line.split(":", 2)[2].startswith(CGROUP + "/") for line in lines):
                found.append(entry)
    return found


def end(run: Path) -> None:
    """Kill all of them, containers first: a shim that dies first would leave its container to the init process.

    Raises TestbedError if something is still there after ten seconds.
    """
    for find in (contained, lambda: processes(run)):
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


def remove_cgroups() -> None:
    """Remove the testbed's cgroups in every hierarchy; the kernel wants the empty inner ones gone first."""
    roots = [place / CGROUP[1:] for place in (CGROUPS, *CGROUPS.glob("*"))]
    for root in roots:
        if root.is_dir():
            for directory, _, _ in os.walk(root, topdown=False):
                with contextlib.suppress(OSError):
                    Path(directory).rmdir()


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


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
