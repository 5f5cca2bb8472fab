"""Everything in one process: pages, API and sockets, the tasks' worker and clock, the watcher, and the jobs' machine.

For a laptop, a demo, one workstation. Four threads of it speak to one SQLite file and to each other in memory, so
there can be only one such process for a data folder.
"""

import asyncio
import contextlib
import fcntl
import ipaddress
import json
import logging
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn
from celery.beat import EmbeddedService
from celery.worker import WorkController
from django.conf import settings
from django.db import connection, connections

from portal.clusters.gateway import backend_of
from portal.clusters.local.backend import LocalBackend
from portal.clusters.models import BackendKind, Cluster
from portal.config.celery import app
from portal.core.clock import now
from portal.core.models import Lease
from portal.watch.runner import run as watch

logger = logging.getLogger(__name__)

LOCK_FILE = "embedded.lock"
WORKER_THREADS = 4
# Seconds: open requests and sockets may take to end, jobs between SIGTERM and SIGKILL, the watcher to store the ends.
REQUESTS, JOBS, WATCHER = 2, 2.0, 3.0


class CannotStart(Exception):
    """Why, and what to do about it, for the person at the terminal."""


@contextlib.contextmanager
def only_one(folder: Path, address: str) -> Iterator[None]:
    """Hold the data folder. Raises `CannotStart` while another process has it.

    The kernel gives the lock back when its holder dies, so nothing stale has to be cleaned up after a crash.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK_FILE).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CannotStart(_taken(folder, file.read())) from None
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "address": address}))
        file.flush()
        yield
        file.truncate(0)


def _taken(folder: Path, note: str) -> str:
    try:
        facts = json.loads(note)
        where = f" as process {facts['pid']}, at {facts['address']}"
    except (ValueError, KeyError, TypeError):
        where = ""
    return f"Beamtime runs already with the data in {folder}{where}.\nStop that one, or set BEAMTIME_DATA_DIR."


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address. Raises `CannotStart` where the address is open to others, or taken."""
    if not is_loopback(host) and settings.BEAMTIME_LOOPBACK_ONLY:
        raise CannotStart(
            f"{host} can be reached from other machines, and everybody who signs in there runs commands as your user.\n"
            "Use 127.0.0.1, or set BEAMTIME_ALLOW_LOCAL_BACKEND=yes if that is wanted."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        # Listening already tells a second process that tries the same port, whatever this one does until it serves.
        made.listen(512)
    except (OSError, OverflowError) as error:
        made.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise CannotStart(
            f"Port {port} of {host} cannot be used: {reason}.\nTake another one: make demo PORT={_another(port)}"
        ) from None
    return made


def _another(port: int) -> int:
    return port + 1 if 1024 <= port < 65_535 else 8001


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(sock: socket.socket, *, on_start: Callable[[], None], say: Callable[[str], None]) -> None:
    """Run everything until SIGINT, SIGTERM or SIGHUP; then end everything, job processes included.

    To be called in the main thread, with the database migrated and the cluster's row there.
    """
    # WhiteNoise wants the folder, even though nothing is collected into it here.
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    # Loads every page, so it is done when the folder is there, and by nobody who only wants the functions above.
    from portal.config.asgi import application  # noqa: PLC0415

    # WhiteNoise hands out small files in this way; nothing that a person at a terminal could do about it.
    warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
    server = _Server(application, on_start)
    with _signals(server):
        _end_stale_leases()
        tasks, watcher = _Tasks(), _Watcher(settings.BEAMTIME_CLUSTER_NAME)
        try:
            tasks.start()
            watcher.start()
            server.run(sockets=[sock])
        finally:
            say("\nStopping…")
            begin = time.monotonic()
            # While the watcher still listens, so that it learns how the jobs ended.
            _end_jobs()
            watcher.stop()
            tasks.stop()
            connections.close_all()
            logger.info("embedded: stopped within %.1f s", time.monotonic() - begin)


def _end_stale_leases() -> None:
    """After a crash nobody waits for a dead leader's lease: whoever holds the data folder is the only one there is."""
    if connection.vendor == "sqlite":
        Lease.objects.update(expires_at=now())


def _end_jobs() -> None:
    cluster = Cluster.objects.filter(name=settings.BEAMTIME_CLUSTER_NAME, backend=BackendKind.LOCAL).first()
    if cluster is not None:
        backend = backend_of(cluster)
        if isinstance(backend, LocalBackend):
            backend.shutdown(grace=JOBS)


class _Server(uvicorn.Server):
    """uvicorn, told to stop by this module's own signal handlers; its own would kill the process before the end."""

    def __init__(self, application: Any, on_start: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                # Nobody has so much to say in one message; without this a socket could hold 16 MiB of memory.
                ws_max_size=128 * 1024,
                timeout_graceful_shutdown=REQUESTS,
            )
        )
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_start()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def _signals(server: uvicorn.Server) -> Iterator[None]:
    """Stop on the first signal, without waiting for open requests on the second."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Tasks:
    """Celery's worker and clock as threads beside the server, over the in-memory broker."""

    def __init__(self) -> None:
        # The checks were run by the command; running them again would cost the start a second.
        os.environ["CELERY_SKIP_CHECKS"] = "1"
        self._worker: WorkController = app.WorkController(
            app=app,
            pool="threads",
            concurrency=WORKER_THREADS,
            hostname="embedded@localhost",
            without_heartbeat=True,
            without_mingle=True,
            without_gossip=True,
        )
        self._thread = threading.Thread(target=self._work, name="celery-worker", daemon=True)
        # The default scheduler keeps a file with what it did last; here the schedule begins anew with each start.
        self._beat = cast(Any, EmbeddedService(app, thread=True, scheduler_cls="celery.beat:Scheduler"))
        self._beat.daemon = True

    def start(self) -> None:
        self._thread.start()
        self._beat.start()

    def _work(self) -> None:
        try:
            self._worker.start()
        except Exception:
            logger.exception("embedded: the worker of tasks ended")

    def stop(self) -> None:
        # Its own `stop` waits out a second of sleep; told so, it sends nothing any more.
        self._beat.service.stop()
        self._worker.stop()
        self._thread.join(WATCHER)


class _Watcher:
    """The watcher on a loop of its own, started again should it fail."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._keep_watching())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    async def _keep_watching(self) -> None:
        while not self._stop.is_set():
            try:
                await watch(self._cluster, self._stop)
            except Exception:
                logger.exception("embedded: the watcher failed and is started again")
                await asyncio.sleep(1)

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(WATCHER)
