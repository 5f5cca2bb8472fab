"""The portal as people run it, for measures that need no Kubernetes: the demo's one process, and a server's web."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet

from tests.bench.processes import ROOT, BenchError, Program, own_environment, uvicorn
from tests.support.servers import PostgresServer, RedisServer, free_port

PASSWORD = "a password for the bench"
TEAM, PERSON = "vision", "member"


class Site:
    """A site with the demo's people and queues, `prepare`d once and then `start`ed and `stop`ped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.program: Program | None = None

    def environment(self) -> dict[str, str]:
        return own_environment() | {
            "BEAMTIME_DATA_DIR": str(self.folder / "data"),
            "BEAMTIME_DEMO_PASSWORD": PASSWORD,
            "BEAMTIME_PUBLIC_URL": self.address,
            "BEAMTIME_CLUSTER_BACKEND": "local",
            "BEAMTIME_LOG_LEVEL": "WARNING",
        }

    @property
    def database_url(self) -> str:
        return f"sqlite:///{self.folder / 'data' / 'beamtime.sqlite3'}"

    def command(self) -> list[str]:
        return [sys.executable, "manage.py", "demo", "--port", str(self.port)]

    def prepare(self) -> None:
        self.manage("migrate", "--verbosity=0")
        self.manage("seed_demo")

    def start(self) -> None:
        self.program = Program(self.command(), environment=self.environment(), log=self.folder / "site.log")
        self.program.until_answering(f"{self.address}/accounts/login/")

    def stop(self) -> None:
        if self.program is not None:
            self.program.end(signal.SIGINT)
            self.program = None

    def close(self) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self.program is not None
        return self.program.process.pid

    def manage(self, *arguments: str) -> str:
        return run(["manage.py", *arguments], self.environment())

    def inside(self, verb: str, *arguments: object) -> Any:
        """The answer of a function of `tests.bench.inside`, run in a process of the portal's own."""
        words = ["-m", "tests.bench.inside", verb, *map(str, arguments)]
        return json.loads(run(words, self.environment()).splitlines()[-1])


class Server(Site):
    """Server mode: web alone, with PostgreSQL as Debian ships it (durable) and Redis."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.postgres = PostgresServer(durable=True)
        self.redis = RedisServer()
        self._keys = {
            "BEAMTIME_SECRET_KEY": secrets.token_urlsafe(50),
            "BEAMTIME_SECRETS_KEYS": Fernet.generate_key().decode(),
        }

    def environment(self) -> dict[str, str]:
        return super().environment() | self._keys | {
            "BEAMTIME_MODE": "server",
            "BEAMTIME_ALLOW_LOCAL_BACKEND": "yes",
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.redis.url,
        }  # fmt: skip

    @property
    def database_url(self) -> str:
        return self.postgres.url

    def command(self) -> list[str]:
        return uvicorn("portal.config.asgi:application", self.port)

    def prepare(self) -> None:
        super().prepare()
        self.manage("collectstatic", "--noinput", "--verbosity=0")

    def close(self) -> None:
        super().close()
        self.redis.close()
        self.postgres.close()


def run(arguments: list[str], environment: dict[str, str]) -> str:
    """What this Python printed. Raises BenchError with all it said when it fails."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BenchError(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
