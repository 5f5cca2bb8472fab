"""`make demo`: from nothing to the sign-in page, and the second start."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.bench import processes
from tests.bench.context import Bench
from tests.bench.processes import ROOT, Program, own_environment
from tests.bench.table import Row
from tests.support.servers import free_port

FIRST, SECOND = 180.0, 8.0
# A machine that has never seen any of it keeps no downloads.
_NO_CACHE = {"PIP_NO_CACHE_DIR": "1"}


def measure(bench: Bench) -> list[Row]:
    """First start beside pip alone, second start beside a server with one page."""
    folder = bench.fresh("demo")
    folder.mkdir()
    first = _start(folder)
    second = _start(folder)
    bench.say("pip alone")
    pip = _pip_alone(folder)
    hello = _hello(folder)
    return [
        Row(
            "`make demo` from a fresh environment to the sign-in page",
            "3 min",
            f"{first:.0f} s",
            first <= FIRST,
            f"virtual environment and pip alone: {pip:.0f} s",
            first / pip,
        ),
        Row(
            "`make demo`, second start to the sign-in page",
            "8 s",
            f"{second:.1f} s",
            second <= SECOND,
            f"uvicorn with one page: {hello:.1f} s",
            second / hello,
        ),
    ]


def _start(folder: Path) -> float:
    """Seconds until the page to sign in is answered; ended by Ctrl-C afterwards."""
    port = free_port()
    environment = own_environment() | _NO_CACHE | {
        "PORT": str(port),
        "VENV": str(folder / "venv"),
        "BEAMTIME_DATA_DIR": str(folder / "data"),
    }  # fmt: skip
    return _until_answered(["make", "demo"], f"http://127.0.0.1:{port}/accounts/login/", environment, folder, FIRST * 3)


def _hello(folder: Path) -> float:
    port = free_port()
    command = processes.uvicorn("tests.bench.hello:app", port)
    return _until_answered(command, f"http://127.0.0.1:{port}/", own_environment(), folder, SECOND * 3)


def _until_answered(command: list[str], address: str, environment: dict[str, str], folder: Path, most: float) -> float:
    begin = time.monotonic()
    program = Program(command, environment=environment, log=folder / "start.log")
    try:
        program.until_answering(address, seconds=most)
        return time.monotonic() - begin
    finally:
        program.end(signal.SIGINT)


def _pip_alone(folder: Path) -> float:
    begin = time.monotonic()
    place = folder / "pip-alone"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = str(place / "bin" / "pip")
    install = [pip, "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"]
    subprocess.run(install, cwd=ROOT, env=own_environment() | _NO_CACHE, check=True)
    return time.monotonic() - begin
