"""Somebody who watches the cluster through the backend, as the watch process does."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import aclosing, suppress

from portal.clusters.kube.backend import KubeBackend
from portal.clusters.specs import AttemptFacts
from tests.clusters.kube.stories import NAME

DEADLINE = 10.0


class Watching:
    """Observes in a thread, as the watch process does, and keeps what it is told."""

    def __init__(self, backend: KubeBackend) -> None:
        self._backend = backend
        self.told: list[AttemptFacts] = []
        self.error: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._task: asyncio.Task[None] | None = None

    def _run(self) -> None:
        self._task = self._loop.create_task(self._observe())
        with suppress(asyncio.CancelledError):
            try:
                self._loop.run_until_complete(self._task)
            except Exception as error:  # shown by `until`
                self.error = error
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _observe(self) -> None:
        async with aclosing(self._backend.observe()) as facts:
            async for each in facts:
                self.told.append(each)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._task is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive(), "observe did not end when it was told to"

    def last(self, name: str = NAME) -> AttemptFacts | None:
        return next((each for each in reversed(self.told) if each.name == name), None)

    def until(self, story: str, holds: Callable[[AttemptFacts], object], name: str = NAME) -> AttemptFacts:
        """The latest facts of an attempt, once they are as the story says."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if self.error is not None:
                raise self.error
            last = self.last(name)
            if last is not None and holds(last):
                return last
            time.sleep(0.005)
        raise AssertionError(f"never told that {story}; told last: {self.last(name)}")
