"""A throwaway Redis and a throwaway PostgreSQL, each in a folder of its own on a free port of the loopback."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.support.debian import find

PATIENCE_SECONDS = 30


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{what} ended at once with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{what} did not answer on port {port} within {PATIENCE_SECONDS} s")


class RedisServer:
    """`url` while it runs; `stop` and `start` again keep the port, for tests of an outage."""

    def __init__(self) -> None:
        self.port = free_port()
        self.folder = tempfile.mkdtemp(prefix="beamtime-redis-")
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = [
            find("redis-server"),
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            self.folder,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_for_port(self.port, self.process, "Redis")

    def stop(self) -> None:
        """Killed, as an outage would: nothing is flushed."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class PostgresServer:
    """A fresh cluster with one database, without durability, because it lives for one run of the suite.

    `durable`: with PostgreSQL's own defaults instead, for who measures.
    """

    def __init__(self, *, durable: bool = False) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="beamtime-postgres-"))
        # PostgreSQL refuses to run as root; Debian's package brings the user for it.
        self._user = pwd.getpwnam("postgres") if os.geteuid() == 0 and find("initdb") else None
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        initdb = Path(find("initdb"))
        data = str(self.folder / "data")
        self._run([str(initdb), "-D", data, "-U", "beamtime", "--auth=trust", "-E", "UTF8", "--no-sync"])
        hasty = ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]
        options = [] if durable else hasty
        where = ["-p", str(self.port), "-k", str(self.folder), "-c", "listen_addresses=127.0.0.1"]
        self.process = self._start([str(initdb.parent / "postgres"), "-D", data, *where, *options])
        wait_for_port(self.port, self.process, "PostgreSQL")
        psql = [str(initdb.parent / "createdb"), "-h", "127.0.0.1", "-p", str(self.port), "-U", "beamtime", "beamtime"]
        for _ in range(PATIENCE_SECONDS * 10):
            if subprocess.run(psql, stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError("PostgreSQL takes connections but makes no database")

    @property
    def url(self) -> str:
        return f"postgres://beamtime@127.0.0.1:{self.port}/beamtime"

    def _identity(self) -> dict[str, int]:
        return {} if self._user is None else {"user": self._user.pw_uid, "group": self._user.pw_gid}

    def _run(self, command: list[str]) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self._identity())  # type: ignore[call-overload]

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        log = (self.folder / "server.log").open("wb")
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self._identity())  # type: ignore[call-overload, no-any-return]

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
