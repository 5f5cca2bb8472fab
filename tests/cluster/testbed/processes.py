"""Start, stop, pause and find again the processes of the testbed, also those that an earlier run left behind.

A record is one JSON file per name: `{"pid": int, "started": int}`, where `started` is the process's start time in clock
ticks since boot. Pid and start time together name one process for ever, so a reused pid is never signalled.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .paths import TestbedError
from .probes import until


def stat_of(pid: int) -> tuple[str, int] | None:
    """State letter and start time in ticks of a process, None if there is none with this pid.

    A zombie is none, but only once its last thread is gone: until then a killed process still holds its ports.
    """
    with contextlib.suppress(ChildProcessError):
        # Our own dead children stay zombies, and look alive, until somebody asks for their exit status.
        os.waitpid(pid, os.WNOHANG)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" and threads <= 1 else (fields[0], int(fields[19]))


def _threads(pid: int) -> list[str]:
    """The state letter of each thread."""
    letters = []
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            letters.append(path.read_text().rsplit(")", 1)[1].split()[0])
    return letters


class Processes:
    """Named background processes, each in a process group of its own, with a log file and a record."""

    def __init__(self, records: Path, logs: Path) -> None:
        self.records = records
        self.logs = logs

    def names(self) -> list[str]:
        return sorted(path.stem for path in self.records.glob("*.json"))

    def pid(self, name: str) -> int | None:
        """The pid of a process that is there (running or paused), else None."""
        try:
            record = json.loads((self.records / f"{name}.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        pid, started = int(record["pid"]), int(record["started"])
        found = stat_of(pid)
        return pid if found and found[1] == started else None

    def state(self, name: str) -> str:
        """`running`, `paused` (stopped by a signal) or `dead`."""
        pid = self.pid(name)
        if pid is None:
            return "dead"
        return "paused" if all(letter == "T" for letter in _threads(pid)) else "running"

    def start(self, name: str, argv: Sequence[str], *, environment: Mapping[str, str], directory: Path) -> int:
        """Start a command as the leader of a new process group; its output is appended to `<logs>/<name>.log`.

        The environment is exactly the one given: a proxy or a kubeconfig of the person who runs the tests must not
        leak in.
        """
        if self.pid(name):
            raise TestbedError(f"{name} is already running")
        self.records.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        with (self.logs / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                list(argv),
                cwd=directory,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        found = stat_of(child.pid)
        started = found[1] if found else 0
        (self.records / f"{name}.json").write_text(json.dumps({"pid": child.pid, "started": started}))
        child.returncode = 0  # `stat_of` reaps; without this Popen warns about a child that still runs
        return child.pid

    def signal(self, name: str, number: int) -> None:
        """Signal the whole group; a process that is gone already is a TestbedError."""
        pid = self.pid(name)
        if pid is None:
            raise TestbedError(f"{name} is not running")
        os.killpg(pid, number)

    def pause(self, name: str) -> None:
        """SIGSTOP, and wait until it stands still: sockets stay open and nobody answers, as on a machine that hangs."""
        self.signal(name, signal.SIGSTOP)
        until(lambda: self.state(name) != "running", seconds=10, what=f"{name} to stand still", pause=0.005)

    def resume(self, name: str) -> None:
        self.signal(name, signal.SIGCONT)

    def kill(self, name: str) -> None:
        """SIGKILL, and wait until it is gone."""
        self.signal(name, signal.SIGKILL)
        self.wait_dead([name], seconds=10)

    def terminate(self, names: Sequence[str], *, seconds: float) -> None:
        """SIGTERM to all at once, SIGKILL to whoever is there after `seconds`; those not running are passed over."""
        for name in names:
            with contextlib.suppress(TestbedError, ProcessLookupError):
                self.signal(name, signal.SIGTERM)
                self.signal(name, signal.SIGCONT)
        late = self.wait_dead(names, seconds=seconds)
        for name in late:
            with contextlib.suppress(TestbedError, ProcessLookupError):
                self.signal(name, signal.SIGKILL)
        if self.wait_dead(late, seconds=10):
            raise TestbedError(f"would not die: {', '.join(late)}")

    def wait_dead(self, names: Sequence[str], *, seconds: float) -> list[str]:
        """Wait until none of these is there; answers those that still are after `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            left = [name for name in names if self.pid(name)]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.02)

    def tail(self, name: str, lines: int = 15) -> str:
        """The last lines of a log, for an error message."""
        try:
            text = (self.logs / f"{name}.log").read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])
