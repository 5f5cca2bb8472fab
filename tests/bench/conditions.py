"""Under which conditions a run was made: machine, versions, load."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.bench.processes import ROOT
from tests.support.debian import ProgramMissing, find

PACKAGES = ("Django", "celery", "uvicorn", "psycopg", "kubernetes")


def load() -> float:
    """How many processes have wanted a processor at a time, over the last minute."""
    return os.getloadavg()[0]


def lines() -> list[str]:
    """Name and value, one condition a line."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    programs = ", ".join(filter(None, (_says("redis-server", "--version"), _says("postgres", "--version"))))
    return [
        f"machine: {os.cpu_count()} cores ({_cpu()}), {_memory_gib():.0f} GiB, Linux {platform.release()}; everything "
        "shares it, the measuring programs too",
        f"versions: Python {platform.python_version()}, {packages}, {programs}; Kubernetes, Kueue: see `tests/cluster`",
        "databases: PostgreSQL as it comes (every commit is on the disk before it is answered); SQLite as the demo "
        "has it (WAL, `synchronous=NORMAL`)",
    ]


def until_quiet(*, seconds: float = 180.0) -> None:
    """Wait until the processors have had nothing to do for nine tenths of three seconds: what a measure has left behind
    in the cluster must not count against the next one. At most so long; the load says what it was."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        idle, total = _idle()
        time.sleep(3.0)
        idle, total = (after - before for before, after in zip((idle, total), _idle(), strict=True))
        if idle >= 0.9 * total:
            return


def _idle() -> tuple[int, int]:
    """Ticks of all processors since the start: idle, and all."""
    ticks = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def moment() -> str:
    """ "1 Dec 2026, 05:30"."""
    return f"{datetime.now(UTC):%-d %b %Y, %H:%M}"


def commit() -> str:
    """The commit of the working tree, with a plus sign if something in it is not committed; "" outside of git."""
    try:
        head, changes = (
            _git(*words) for words in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "-uno"))
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changes else "")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _says(program: str, *arguments: str) -> str:
    """The version that a program prints, cut to name and number."""
    try:
        path = Path(find("initdb")).with_name("postgres") if program == "postgres" else Path(find(program))
    except ProgramMissing:
        return ""
    words = subprocess.run([path, *arguments], capture_output=True, text=True, check=True).stdout.split()
    number = next((word for word in words if word.removeprefix("v=")[0].isdigit()), "")
    name = "PostgreSQL" if program == "postgres" else "Redis"
    return f"{name} {number.removeprefix('v=')}"
