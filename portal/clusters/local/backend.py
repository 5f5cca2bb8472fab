"""The `local` backend: the gateway's protocol over processes of this machine. README.md says what it promises."""

import asyncio
import contextlib
import functools
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from portal.clusters.local import devices, logs, manifests, queues
from portal.clusters.local.controller import Controller
from portal.clusters.local.records import moment
from portal.clusters.local.runner import files
from portal.clusters.local.store import Store, key_of
from portal.clusters.local.valid import check
from portal.clusters.specs import (
    AttemptFacts,
    ContainerRef,
    Created,
    JobSpec,
    NameTaken,
    ObjectRef,
    PassingError,
    QueueSnapshot,
    SpaceMissing,
    TeamSpace,
)

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# Seconds: the shortest time between two steps, and the longest while something is under way or nothing is.
_GAP, _BUSY, _IDLE = 0.01, 0.2, 1.0
# How often everything expected is compared with what exists.
_RELIST = 30.0
_LOCK_LOOKS = 0.2


def _passing(method: "Callable[Concatenate[LocalBackend, P], T]") -> "Callable[Concatenate[LocalBackend, P], T]":
    """What the file system refuses, such as a write to a full disk, may work later."""

    def guarded(self: "LocalBackend", /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            self.store.prepare()
            return method(self, *args, **kwargs)
        except OSError as error:
            raise PassingError(f"The job files of this machine cannot be used: {error.strerror or error}.") from error

    return functools.wraps(method)(guarded)


class LocalBackend:
    """Jobs as processes of this machine. Any process may ask; the one that observes also decides and starts."""

    def __init__(self, *, root: Path, cluster: str) -> None:
        self.cluster = cluster
        self.store = Store(root)
        self._expected: Mapping[str, tuple[str, int]] = {}
        self._compare_at = 0.0
        self._controller: Controller | None = None

    # --- what is asked -------------------------------------------------------------------------------------------

    @_passing
    def provision(self, space: TeamSpace) -> None:
        files.write_json(str(self.store.spaces / f"{space.namespace}.json"), {"queues": dict(space.queues)})

    @_passing
    def create(self, spec: JobSpec, secrets: Mapping[str, str]) -> Created:
        check(spec, secrets)
        space = files.read_json(str(self.store.spaces / f"{spec.namespace}.json"))
        known = space["queues"] if space is not None else None
        if not isinstance(known, dict) or known.get(spec.queue) != spec.cluster_queue:
            raise SpaceMissing(f"The LocalQueue {spec.queue} of {spec.namespace} does not exist.")
        job = self.store.add(spec, {name: secrets[name] for name in spec.work.secret_env})
        adopted = job is None
        if job is None:
            job = self.store.load(key_of(spec.namespace, spec.name))
            if job is None:
                raise PassingError(f"{spec.name} is being removed.")
            if (job.spec.job_id, job.digest) != (spec.job_id, spec.digest):
                raise NameTaken("AlreadyExists", f"Another job has the name {spec.name}.")
        self.store.ring()
        created_at = moment(job.created_at)
        assert created_at is not None  # noqa: S101 - for mypy: a number of seconds is always a time
        return Created(uid=job.uid, created_at=created_at, adopted=adopted)

    @_passing
    def delete(self, ref: ObjectRef) -> bool:
        job = self.store.load(key_of(ref.namespace, ref.name))
        if job is None or (ref.uid and ref.uid != job.uid):
            return True
        self.store.ask_deletion(job)
        self.store.ring()
        return False

    def manifests(self, spec: JobSpec) -> list[dict[str, Any]]:
        return manifests.preview(spec)

    @_passing
    def read_queues(self) -> QueueSnapshot:
        return queues.Reader(self.store.queues).read()

    @_passing
    def write_queues(self, snapshot: QueueSnapshot) -> None:
        queues.write(self.store.queues, snapshot)
        self.store.ring()

    def expect(self, refs: Mapping[str, tuple[str, int]]) -> None:
        self._expected = dict(refs)
        self._compare_at = 0.0
        self.store.ring()

    # --- what is told --------------------------------------------------------------------------------------------

    async def observe(self) -> AsyncGenerator[AttemptFacts, None]:
        """Also does the deciding: one observer at a time, in all processes together; others wait for their turn."""
        lock = await self._take_lock()
        told: dict[str, AttemptFacts] = {}
        news = asyncio.Event()
        try:
            control = asyncio.create_task(self._control(told, news))
            control.add_done_callback(lambda _: news.set())
            try:
                while True:
                    await news.wait()
                    news.clear()
                    if control.done():
                        control.result()  # it ends only by an error, which is the observer's then
                    while told:
                        # Told late, a job is told once, as it is then.
                        yield told.pop(next(iter(told)))
            finally:
                control.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await control
        finally:
            os.close(lock)

    async def read_log(self, ref: ContainerRef, *, since: datetime | None, follow: bool) -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(logs.read_log(self.store, ref, since=since, follow=follow)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def log_head(self, ref: ContainerRef) -> None:
        """Nothing rotates a log of this machine."""

    # --- the end -------------------------------------------------------------------------------------------------

    def shutdown(self, grace: float = 2.0) -> None:
        """End every process of every job, because the portal of this machine ends. Blocks until that is done.

        Nothing new is started from then on. Whoever observes in this process goes on telling, so that the ends are
        known before it stops. Does nothing where another process controls this cluster.
        """
        controller, lock = self._controller, None
        if controller is None:
            self.store.prepare()
            lock = files.take_lock(str(self.store.lock))
            if lock is None:
                return
            controller = self._new_controller()
        try:
            controller.closing = grace
            self._await_end(controller, time.monotonic() + grace + 1.5, steps_itself=lock is not None)
        finally:
            if lock is not None:
                os.close(lock)

    def _await_end(self, controller: Controller, deadline: float, *, steps_itself: bool) -> None:
        first = controller.steps
        while time.monotonic() < deadline:
            if steps_itself:
                controller.step()
            else:
                self.store.ring()
            # The step that was going on may have begun before the end was announced; the second one knows of it.
            if controller.steps >= first + 2 and not controller.at_work:
                return
            time.sleep(0.02)
        controller.kill_all()

    # --- inside --------------------------------------------------------------------------------------------------

    def _new_controller(self) -> Controller:
        return Controller(self.store, cluster=self.cluster, gpus=devices.installed())

    async def _take_lock(self) -> int:
        while True:
            try:
                self.store.prepare()
                lock = files.take_lock(str(self.store.lock))
            except OSError as error:
                logger.warning("the job files of this machine cannot be used yet: %s", error)
                lock = None
            if lock is not None:
                return lock
            await asyncio.sleep(_LOCK_LOOKS)

    async def _control(self, told: dict[str, AttemptFacts], news: asyncio.Event) -> None:
        """Step whenever the bell rings, and now and then without; in a thread, for files and forks take their time."""
        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(1, thread_name_prefix="local-controller")
        bell = _Bell(self.store.bell, loop)
        try:
            controller = None
            while True:
                try:
                    if controller is None:
                        self._controller = controller = await loop.run_in_executor(pool, self._new_controller)
                    told.update(await loop.run_in_executor(pool, self._step, controller))
                except OSError:
                    logger.exception("the jobs of this machine could not be looked after; trying again")
                    await asyncio.sleep(1)
                    continue
                if told:
                    news.set()
                await asyncio.sleep(_GAP)
                await bell.wait(_BUSY if controller.busy else _IDLE)
        finally:
            self._controller = None
            bell.close()
            # A step that is under way is finished; nobody else may step before.
            pool.shutdown(wait=True)

    def _step(self, controller: Controller) -> dict[str, AttemptFacts]:
        if time.monotonic() < self._compare_at:
            return controller.step()
        # Set before the step, so that an `expect` that comes meanwhile is not lost.
        self._compare_at = time.monotonic() + _RELIST
        return controller.step(self._expected)


class _Bell:
    """The FIFO by which every process that changes something wakes the controller."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        # Opened for writing too, or it would read as ended whenever no writer has it open.
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._loop = loop
        self._rung = asyncio.Event()
        loop.add_reader(self._pipe, self._hear)

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._pipe, 65536)
        self._rung.set()

    async def wait(self, seconds: float) -> None:
        """Until it rings, or rang since the last time, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        self._rung.clear()

    def close(self) -> None:
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
