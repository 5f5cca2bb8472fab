"""A newcomer's first ten minutes, by program: `make demo` in a fresh environment, one job through the API.

Run as `python3 tests/flows/demo_smoke.py`; needs nothing but Python and make. Prints how long each part took, and
`1 passed, 0 failed` at the end.
"""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = "echo hello from $USERWORD\nfor i in 1 2 3; do echo line $i; done\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def call(base: str, path: str, token: str = "", body: dict[str, Any] | None = None) -> Any:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data=data, headers=headers)  # noqa: S310 - our own address
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        text = answer.read().decode()
        return json.loads(text) if "json" in answer.headers["Content-Type"] else text


def until(what: str, seconds: float, ask: Any) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = ask()
        if found:
            return found
        time.sleep(0.2)
    raise SystemExit(f"{what}: not within {seconds:.0f} s")


def answers(base: str) -> bool:
    try:
        call(base, "/accounts/login/")
    except (urllib.error.URLError, OSError):
        return False
    return True


def start(environment: dict[str, str], base: str, seconds: float) -> "subprocess.Popen[bytes]":
    begin = time.monotonic()
    demo = subprocess.Popen(["make", "demo"], cwd=ROOT, env=environment, start_new_session=True)

    def up() -> bool:
        if demo.poll() is not None:
            raise SystemExit(f"make demo ended with status {demo.returncode}")
        return answers(base)

    until("the sign-in page", seconds, up)
    print(f"sign-in page after {time.monotonic() - begin:.1f} s", flush=True)
    return demo


def end(demo: "subprocess.Popen[bytes]") -> None:
    os.killpg(demo.pid, signal.SIGINT)
    try:
        demo.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(demo.pid, signal.SIGKILL)
        raise SystemExit("make demo did not end within 20 s of Ctrl-C") from None


def run_one_job(base: str, token: str) -> None:
    values = {"script": SCRIPT, "env": {"USERWORD": "a newcomer"}}
    job = call(base, "/api/v1/jobs/", token, {"team": "vision", "template": "script", "values": values})
    address = f"/api/v1/jobs/{job['id']}/"

    def over() -> Any:
        seen = call(base, address, token)
        return seen if seen["state"] in {"succeeded", "failed", "rejected", "lost", "cancelled"} else None

    job = until("the job's end", 60, over)
    assert job["state"] == "succeeded", job
    stream = job["streams"][0]["id"]
    until("the whole log", 20, lambda: call(base, f"/api/v1/streams/{stream}/", token)["complete"])
    page = call(base, f"/api/v1/streams/{stream}/lines/?from=1&limit=100", token)
    assert [line["text"] for line in page["lines"]] == ["hello from a newcomer", "line 1", "line 2", "line 3"], page
    assert call(base, f"/api/v1/streams/{stream}/download/", token).endswith("line 3\n")
    rows = call(base, f"/api/v1/usage/?job={job['id']}", token)["results"]
    assert all(row["seconds"] is not None and row["started_at"] for row in rows), rows


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="beamtime-smoke-") as folder:
        port = free_port()
        base = f"http://127.0.0.1:{port}"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BEAMTIME_")} | {
            "PORT": str(port),
            "VENV": f"{folder}/venv",
            "BEAMTIME_DATA_DIR": f"{folder}/var",
            "BEAMTIME_DEMO_PASSWORD": "a password for the smoke test",
        }
        demo = start(environment, base, 300)
        try:
            command = [f"{folder}/venv/bin/python", "manage.py", "token", "member"]
            printed = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
            token = printed.stdout.strip().splitlines()[-1]
            run_one_job(base, token)
        finally:
            end(demo)
        again = start(environment, base, 60)
        try:
            jobs = call(base, "/api/v1/jobs/", token)["results"]
            assert len(jobs) == 1, "the second start lost the job"
        finally:
            end(again)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
