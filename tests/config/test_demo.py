"""`manage.py demo` as a person at a terminal meets it: real processes, from the first start to the last."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
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


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    made = Demo(tmp_path / "var")
    made.start()
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.end()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_a_newcomer_runs_a_job_ends_the_demo_and_finds_everything_again(demo: Demo) -> None:
    printed = eventually(lambda: "Ctrl-C" in demo.printed() and demo.printed(), "the welcome")
    for word in (f"http://127.0.0.1:{demo.port}", "member", "lead", "outsider", "auditor", "admin", PASSWORD):
        assert word in printed
    demo.sign_in()
    first = demo.submit("echo hello")
    demo.wait(first, "succeeded")
    eventually(lambda: demo.log(first) == "hello\n", "the whole log")
    running = demo.submit("trap '' TERM; echo $$; while :; do sleep 0.1; done")
    pid = int(demo.said(running)[0])
    status = Path(f"/proc/{demo.process.pid}/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0])
    assert resident < 200_000, f"{resident} kB are resident"

    begin = time.monotonic()
    assert demo.end() == 0
    assert time.monotonic() - begin < 15
    assert not is_alive(pid), "Ctrl-C ends every process that the demo started"

    begin = time.monotonic()
    demo.start()
    assert time.monotonic() - begin < 30
    assert demo.job(first)["state"] == "succeeded"
    assert demo.log(first) == "hello\n"
    over = demo.wait(running, "failed", "lost")
    assert "Beamtime was stopped" in over["attempts"][0]["cluster_message"]


def test_a_second_start_says_that_it_runs_already_and_harms_nothing(demo: Demo) -> None:
    again = demo.manage("demo", "--port", str(demo.port))
    assert again.returncode != 0
    assert f"at http://127.0.0.1:{demo.port}" in again.stderr
    assert "Traceback" not in again.stderr
    reset = demo.manage("demo_reset")
    assert reset.returncode != 0
    assert (demo.folder / "beamtime.sqlite3").exists()
    assert demo.process.poll() is None


def test_a_job_survives_the_demos_sudden_death_and_is_found_with_its_whole_log(demo: Demo) -> None:
    demo.sign_in()
    job = demo.submit("echo $$; while [ ! -e stop ]; do sleep 0.05; done; echo survived; exit 0")
    pid = int(demo.said(job)[0])
    demo.end(signal.SIGKILL)
    assert is_alive(pid)
    demo.start()
    assert demo.job(job)["state"] == "running"
    [work] = demo.folder.glob("local/*/pods/*/work")
    (work / "stop").touch()
    demo.wait(job, "succeeded")
    eventually(lambda: demo.log(job) == f"{pid}\nsurvived\n", "the whole log, each line once")


def test_a_reset_forgets_everything_that_the_demo_made_and_nothing_else(demo: Demo) -> None:
    demo.sign_in()
    job = demo.submit("echo $$; sleep 300")
    pid = int(demo.said(job)[0])
    (demo.folder / "mine.txt").write_text("of the person at the terminal")
    demo.end(signal.SIGKILL)
    reset = demo.manage("demo_reset")
    assert reset.returncode == 0, reset.stderr
    assert not is_alive(pid)
    assert [path.name for path in demo.folder.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    refused = Demo(tmp_path / "var").manage("demo", f"--port={port}")
    assert refused.returncode != 0
    assert "is no port" in refused.stderr
    assert "Traceback" not in refused.stderr
