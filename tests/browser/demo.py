"""The real demo as a process of its own: everything embedded, its own data folder, a free port of the loopback."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.servers import free_port

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "demo-demo-demo"
PATIENCE_SECONDS = 60
OVER = ("succeeded", "failed", "cancelled", "rejected", "lost")

Answer = tuple[int, dict[str, str], bytes]


class Demo:
    """`url` while it runs. `api` speaks as `member` with a token, as a script would."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("BEAMTIME_") and name not in ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")
        } | {"BEAMTIME_DATA_DIR": str(folder), "BEAMTIME_DEMO_PASSWORD": PASSWORD, "BEAMTIME_CLUSTER_BACKEND": "local"}
        self.log = (folder / "demo.log").open("wb")
        self.process = self._start("demo", "--port", str(self.port))
        try:
            wait_until(self._answers, "the demo answers")
            self._token = self._run("token", "member").strip()
        except BaseException:
            self.close()
            raise

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, str(ROOT / "manage.py"), *words]

    def _start(self, *words: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self._command(*words), env=self._environment, cwd=ROOT, stdout=self.log, stderr=subprocess.STDOUT
        )

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            self._command(*words), env=self._environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
        return done.stdout

    def manage(self, *words: str) -> str:
        """What a command of the portal's prints, on this demo's data."""
        return self._run(*words)

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"the demo ended at once:\n{(self.folder / 'demo.log').read_text()}")
        try:
            return self._ask("GET", "/healthz", None, {})[0] == HTTPStatus.OK
        except OSError:
            return False

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        status, _headers, answer = self._answer(method, path, body, headers)
        return status, answer

    def _answer(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    # --- what a script does ------------------------------------------------------------------------------------------

    def api(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON of an answer; a body is sent by POST."""
        return json.loads(self.read(f"/api/v1/{path}", body))

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, key: str = "") -> Answer:
        """Status, headers and text of whatever is answered."""
        headers = self.headers() | ({"Idempotency-Key": key} if key else {})
        return self._answer(method, path, json.dumps(body).encode() if body is not None else None, headers)

    def read(self, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        headers = self.headers()
        if body is not None:
            headers["Idempotency-Key"] = uuid4().hex
        sent = json.dumps(body).encode() if body is not None else None
        status, answer = self._ask("GET" if sent is None else "POST", path, sent, headers)
        assert status < HTTPStatus.BAD_REQUEST, f"{path}: {status} {answer[:2000]!r}"
        return answer

    def submit(self, template: str, name: str = "", *, queue: str | None = None, **values: Any) -> str:
        """The id of a new job of team vision."""
        body = {"team": "vision", "template": template, "name": name, "queue": queue, "values": values}
        return str(self.api("jobs/", {key: value for key, value in body.items() if value is not None})["id"])

    def script(self, text: str, name: str = "", **values: Any) -> str:
        return self.submit("script", name, script=text, **values)

    def python(self, text: str, name: str = "") -> str:
        """A job that runs a Python program, with what the shell would change kept out of its way."""
        return self.script(f"exec python3 -u - <<'END_OF_PROGRAM'\n{text}\nEND_OF_PROGRAM\n", name)

    def job(self, job_id: str) -> Any:
        return self.api(f"jobs/{job_id}/")

    def cancel(self, job_id: str) -> None:
        self.api(f"jobs/{job_id}/cancel/", {})

    def wait(self, job_id: str, *states: str) -> Any:
        """The job once it is in one of these states, or over."""
        wanted = states or OVER
        wait_until(lambda: self.job(job_id)["state"] in wanted, f"job {job_id} is {' or '.join(wanted)}")
        return self.job(job_id)

    def stream(self, job_id: str) -> str:
        """The id of the job's one log, once it is whole."""
        wait_until(lambda: self._whole(job_id), f"the log of {job_id} is whole")
        return str(self.job(job_id)["streams"][0]["id"])

    def _whole(self, job_id: str) -> bool:
        streams = self.job(job_id)["streams"]
        return bool(streams) and all(stream["complete"] for stream in streams)

    def lines(self, stream: str) -> list[dict[str, Any]]:
        """Every line, read page by page."""
        found: list[dict[str, Any]] = []
        while True:
            page = self.api(f"streams/{stream}/lines/?from={len(found) + 1}&limit=5000")
            found += page["lines"]
            if page["complete"]:
                return found

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def wait_until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Ask again and again until it holds; raises `AssertionError` after the deadline."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
