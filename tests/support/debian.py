"""Programs that the suite needs: found, installed from Debian where we are root, or named in a clear message."""

import os
import shutil
import subprocess
from pathlib import Path

PACKAGES = {"redis-server": "redis-server", "chromium": "chromium", "initdb": "postgresql"}


class ProgramMissing(RuntimeError):
    """A program is not there, and may not be installed from here."""


def find(program: str) -> str:
    """Full path of a program; PostgreSQL's own are looked for where Debian keeps them. Raises `ProgramMissing`."""
    found = _look(program)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], env=environment, check=True, stdout=subprocess.DEVNULL)
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", PACKAGES[program]]
        subprocess.run(install, env=environment, check=True, stdout=subprocess.DEVNULL)
        found = _look(program)
    if found is None:
        raise ProgramMissing(f"{program} is missing: install it first (Debian: apt-get install {PACKAGES[program]})")
    return found


def _look(program: str) -> str | None:
    # PostgreSQL's servers lie beside each other in a folder per version, which is on nobody's PATH.
    for candidate in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), reverse=True):
        return str(candidate)
    return shutil.which(program)
