"""Starting programs, waiting until they answer, and ending them with all their children."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class BenchError(RuntimeError):
    """A measure cannot be taken; the text says why."""


class Program:
    """A process in a group of its own, its output in a file."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=dict(environment), stdout=file, stderr=file, start_new_session=True
            )

    def until_answering(self, address: str, *, seconds: float = 60) -> None:
        """Wait for any answer below 500 from the address."""

        def answers() -> bool:
            if self.process.poll() is not None:
                raise BenchError(f"it ended with status {self.process.returncode}:\n{self.tail()}")
            return is_answering(address)

        until(f"an answer from {address}", answers, seconds=seconds)

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ask it to end, and have it end after 20 s; its children with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def is_answering(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=10):  # noqa: S310 - our own address
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def until(what: str, holds: Callable[[], object], *, seconds: float, look: float = 0.01) -> None:
    """Poll. Raises BenchError with `what` when it does not hold in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise BenchError(f"waited {seconds:.0f} s for {what}")
        time.sleep(look)


def own_environment() -> dict[str, str]:
    """This process's environment without anything that would set up a portal."""
    ours = ("BEAMTIME_", "DJANGO_", "REDIS_URL", "DATABASE_URL", "PORT", "VENV", "MAKE", "MFLAGS")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def uvicorn(application: str, port: int) -> list[str]:
    """The command line that the image uses, for any application."""
    return [
        sys.executable,
        "-m",
        "uvicorn",
        application,
        "--port",
        str(port),
        "--lifespan",
        "off",
        "--log-level",
        "warning",
        "--ws-max-size",
        "131072",
    ]


@contextlib.contextmanager
def running(program: Program) -> Iterator[Program]:
    try:
        yield program
    finally:
        program.end()


def resident_mib(pid: int) -> float:
    """Resident memory of one process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise BenchError(f"process {pid} has no memory to read")
