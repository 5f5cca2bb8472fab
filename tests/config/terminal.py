"""`manage.py demo` as a process of its own, for whoever plays the person at its terminal."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings

PASSWORD = "a password for this test"
SLOW = 120.0  # seconds; a start takes 3 to 5 on an idle machine


def eventually(check: Callable[[], Any], what: str, seconds: float = SLOW) -> Any:
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:.0f} s"
        time.sleep(0.05)


def copied(folder: Path, to: Path) -> Path:
    """Another folder with the same data; a pipe is no data, and whoever needs it makes it again."""
    return shutil.copytree(folder, to, ignore=shutil.ignore_patterns("bell"))


class Demo:
    """The demo in a data folder of its own; may be started again and again."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAMTIME_", "DJANGO_"))}
        for name in ("DATABASE_URL", "REDIS_URL"):
            kept.pop(name, None)
        # So that the variables, too, are as a newcomer's.
        self.environment = {**kept, "BEAMTIME_DATA_DIR": str(folder), "BEAMTIME_DEMO_PASSWORD": PASSWORD}
        self.token = ""

    def manage(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "manage.py", *words]
        return subprocess.run(
            command,
            cwd=settings.BASE_DIR,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SLOW,
            check=False,
        )

    def start(self) -> None:
        self._out = (self.folder.parent / "demo.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--port", str(self.port)],
            cwd=settings.BASE_DIR,
            env=self.environment,
            stdout=self._out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        eventually(self._up, "the sign-in page")

    def _up(self) -> bool:
        assert self.process.poll() is None, self.printed()
        try:
            return "csrfmiddlewaretoken" in self.get("/accounts/login/")
        except (urllib.error.URLError, OSError):
            return False

    def printed(self) -> str:
        return (self.folder.parent / "demo.log").read_text()

    def get(self, path: str, body: Any = None) -> str:
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return str(answer.read().decode())

    def sign_in(self) -> None:
        self.token = self.manage("token", "member").stdout.strip()
        assert self.token

    def submit(self, script: str) -> str:
        body = {"team": "vision", "template": "script", "values": {"script": script}}
        return str(json.loads(self.get("/api/v1/jobs/", body))["id"])

    def job(self, job: str) -> Any:
        return json.loads(self.get(f"/api/v1/jobs/{job}/"))

    def wait(self, job: str, *states: str) -> Any:
        return eventually(lambda: self.job(job)["state"] in states and self.job(job), f"job {job} {states}")

    def log(self, job: str) -> str:
        streams = self.job(job)["streams"]
        return self.get(f"/api/v1/streams/{streams[0]['id']}/download/") if streams else ""

    def said(self, job: str) -> list[str]:
        """The first lines of a job's log, once there are any."""
        return str(eventually(lambda: self.log(job), f"job {job} printing something")).split()

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        try:
            return self.process.wait(30)
        finally:
            self._out.close()
