"""The portal's own processes, as an operator runs them: PostgreSQL, Redis, web, worker, beat and watch."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from celery import Celery
from cryptography.fernet import Fernet
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from tests.support.debian import find
from tests.support.servers import PostgresServer, RedisServer, free_port

from . import rights
from .testbed import images, probes
from .testbed.cluster import Cluster
from .testbed.paths import TestbedError

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
# An image that no node has and no registry gives.
MISSING_IMAGE = f"{images.REGISTRY}/pytorch:missing"
_PROCESSES = ("web", "worker", "beat", "watch")


class Running:
    """One site with a database, a broker and an instance of its own; `start`, `stop` and `kill` its processes by name.

    Names: web, worker, beat, watch; "watch-2" is a second watch. Every process that talks to the cluster does so as the
    account that its Deployment in deploy/kubernetes has, and with no other rights.
    """

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.instance = f"test-{secrets.token_hex(3)}"
        self.team, self.other_team = f"vision-{secrets.token_hex(3)}", f"language-{secrets.token_hex(3)}"
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        # Processes that were started otherwise than usual.
        self._altered: set[str] = set()
        base = rights.Base(cluster)
        base.apply_rights()
        self._kubeconfigs: dict[str, Path] = {}
        for name in _PROCESSES:
            account = base.account_of(name)
            if account is not None:
                self._kubeconfigs[name] = rights.kubeconfig(cluster, account, folder / f"{name}.kubeconfig")
        with ThreadPoolExecutor() as pool:
            postgres = pool.submit(PostgresServer)
            self.redis = RedisServer()
            self.postgres = postgres.result()
        self._keys = {
            "BEAMTIME_SECRET_KEY": secrets.token_urlsafe(50),
            "BEAMTIME_SECRETS_KEYS": Fernet.generate_key().decode(),
        }

    # -- the site

    def kubeconfig(self, process: str) -> Path:
        """With the rights of one process."""
        return self._kubeconfigs[process]

    def environment(self, process: str) -> dict[str, str]:
        """The whole environment of a process: nothing of this one's but the way to programs."""
        given = self._kubeconfigs.get(process)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "BEAMTIME_MODE": "server",
            "BEAMTIME_DATA_DIR": str(self.folder / "data"),
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.redis.url,
            "BEAMTIME_PUBLIC_URL": self.address,
            "BEAMTIME_INSTANCE": self.instance,
            "BEAMTIME_CLUSTER_BACKEND": "kube",
            "BEAMTIME_CLUSTER_KUBECONFIG": str(given) if given is not None else "",
            "BEAMTIME_IMAGE_SHELL": images.BUSYBOX,
            "BEAMTIME_IMAGE_PYTHON": images.PYTHON,
            "BEAMTIME_IMAGE_PYTORCH": MISSING_IMAGE,
            **self._keys,
        }

    def manage(self, *arguments: str, **extra: str) -> str:
        """`manage.py <arguments>` with the worker's rights, as an operator's one-off job has them; what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment("worker") | extra,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise TestbedError(f"manage.py {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def nudge(self, task: str) -> None:
        """Send a task that beat would send at its time."""
        with Celery(broker=self.redis.url) as app:
            app.send_task(task, ignore_result=True)

    def psql(self, query: str) -> str:
        """What the database answers, one row a line; for the harness only, never for a story."""
        program = Path(find("initdb")).parent / "psql"
        done = subprocess.run([program, self.postgres.url, "-Atc", query], capture_output=True, text=True, check=True)
        return done.stdout

    # -- processes

    def start(self, name: str, **changes: str) -> None:
        """Start a process that is not running, and wait until it does its work. `changes`: to its environment."""
        if self.alive(name):
            raise TestbedError(f"{name} is running already")
        kind = name.partition("-")[0]
        environment = self.environment(kind) | changes
        self._altered = self._altered | {name} if changes else self._altered - {name}
        log = self.log_file(name).open("ab")
        command = [sys.executable, *self._command(kind)]
        # A group of its own: SIGKILL then takes its children along, as the end of its container would.
        self._processes[name] = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        self._wait_until_ready(name, kind)

    def start_all(self) -> None:
        """Start every process that is not running, side by side: each takes seconds to load."""
        names = [name for name in _PROCESSES if not self.alive(name)]
        with ThreadPoolExecutor() as pool:
            for done in [pool.submit(self.start, name) for name in names]:
                done.result()

    def alive(self, name: str) -> bool:
        process = self._processes.get(name)
        return process is not None and process.poll() is None

    def pid(self, name: str) -> int:
        """Of a process that was started."""
        return self._processes[name].pid

    def kill(self, name: str) -> None:
        """SIGKILL to the process and all its children; gone when this returns."""
        self._signal(name, signal.SIGKILL)
        self._processes.pop(name).wait()

    def pause(self, name: str) -> None:
        """SIGSTOP: its connections stay open and it does nothing, until `resume`."""
        self._signal(name, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """SIGCONT."""
        self._signal(name, signal.SIGCONT)

    def stop(self, name: str) -> None:
        """SIGTERM, and wait for the orderly end."""
        process = self._processes[name]
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill(name)
            raise TestbedError(f"{name} did not end within 30 s of SIGTERM") from None
        del self._processes[name]

    def log_file(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def tail(self, name: str, lines: int = 15) -> str:
        """The last lines that a process wrote, for a message about a failure."""
        with contextlib.suppress(FileNotFoundError):
            return "\n".join(self.log_file(name).read_text(errors="replace").splitlines()[-lines:])
        return ""

    def heal(self) -> None:
        """Start what a test has left dead or altered, end what it started beside."""
        if self.redis.process is None:
            self.redis.start()
        for name in list(self._processes):
            if name not in _PROCESSES or name in self._altered:
                self.kill(name)
        self.start_all()

    def close(self) -> None:
        """End everything; the namespaces of both teams go too."""
        for name in list(self._processes):
            with contextlib.suppress(ProcessLookupError):
                self.kill(name)
        self.redis.close()
        self.postgres.close()
        for team in (self.team, self.other_team):
            self.cluster.kubectl("delete", "namespace", f"bt-{team}", "--ignore-not-found", "--wait=false")

    def _signal(self, name: str, number: signal.Signals) -> None:
        os.killpg(self._processes[name].pid, number)

    def _command(self, kind: str) -> list[str]:
        celery, uvicorn = ["-m", "celery", "-A", "portal.config"], ["-m", "uvicorn", "portal.config.asgi:application"]
        return {
            "web": [*uvicorn, "--port", str(self.port), "--log-level", "warning", "--ws-max-size", "131072"],
            "worker": [*celery, "worker", "--concurrency", "2", "--loglevel", "WARNING"],
            "beat": [*celery, "beat", "--schedule", str(self.folder / "beat"), "--loglevel", "WARNING"],
            "watch": ["manage.py", "watch"],
        }[kind]

    # -- readiness

    def _wait_until_ready(self, name: str, kind: str) -> None:
        checks: dict[str, Callable[[], bool]] = {
            "web": lambda: self._answers("/healthz"),
            "worker": self._worker_answers,
            "beat": lambda: True,
            # A first one leads, at the latest when the lease of a killed one has run out; a second one stands by.
            "watch": lambda: name != "watch" or self.alive("watch-2") or self._leads(name),
        }

        def ready() -> bool:
            if not self.alive(name):
                raise TestbedError(f"{name} ended at once:\n{self.tail(name)}")
            return checks[kind]()

        try:
            probes.until(ready, seconds=PATIENCE, what=f"{name} to be ready")
        except TestbedError as late:
            raise TestbedError(f"{late}\n{self.tail(name)}") from late

    def _answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(self.address + path, timeout=5) as answer:  # noqa: S310 - our own address
                return bool(answer.status == 200)
        except OSError:
            return False

    def _worker_answers(self) -> bool:
        try:
            with Celery(broker=self.redis.url) as app:
                return bool(app.control.ping(timeout=0.5))
        except (RedisError, OperationalError):
            return False

    def _leads(self, name: str) -> bool:
        """Whether this very process holds the watcher's lease."""
        holder = self.psql("SELECT holder FROM core_lease WHERE expires_at > now()")
        return f":{self._processes[name].pid}:" in holder

    @staticmethod
    def pause_between_looks() -> None:
        """Between two looks at something that has to come about by itself."""
        time.sleep(0.1)
