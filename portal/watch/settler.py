"""Telling when everything that an attempt could tell is stored, so that its object may go."""

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from portal.clusters.specs import AttemptFacts
from portal.jobs import services as jobs
from portal.logs import selectors as logs
from portal.usage import selectors as usage
from portal.watch.desk import Desk
from portal.watch.facts import Key, is_finished, key_of

logger = logging.getLogger(__name__)


class Settler:
    """Remembers the newest facts of every attempt, and marks those as stored of which nothing more can come."""

    def __init__(
        self,
        *,
        desk: Desk,
        is_applied: Callable[[Key], bool],
        logs_done: Callable[[AttemptFacts], bool],
        forget: Callable[[Key], None],
    ) -> None:
        self._desk = desk
        self._is_applied, self._logs_done, self._forget = is_applied, logs_done, forget
        self._facts: dict[Key, AttemptFacts] = {}
        self._stored: set[Key] = set()
        self._busy: set[Key] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def see(self, facts: AttemptFacts) -> None:
        """The newest facts of an attempt. Whatever was stored, these are not yet."""
        key = key_of(facts)
        self._facts[key] = facts
        self._stored.discard(key)

    def present(self) -> dict[tuple[str, int], set[str]]:
        """The pods that exist, by attempt, of every attempt that was told of."""
        return {key: {pod.uid for pod in facts.pods if not pod.gone} for key, facts in self._facts.items()}

    def look(self, key: Key) -> None:
        """Something was stored: see whether this was the last of it. Returns at once."""
        facts = self._facts.get(key)
        if facts is None or key in self._busy or not is_finished(facts):
            return
        if not (self._is_applied(key) and self._logs_done(facts)):
            return
        if key in self._stored:
            self._leave(key, facts)
            return
        self._busy.add(key)
        task = asyncio.create_task(self._settle(key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def look_at_all(self) -> None:
        """Try again what failed before."""
        for key in list(self._facts):
            self.look(key)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _settle(self, key: Key) -> None:
        try:
            if await self._desk.call(settle, key):
                self._stored.add(key)
        except Exception:
            logger.exception("watch: attempt %s of job %s could not be marked as stored yet", key[1], key[0])
        finally:
            self._busy.discard(key)
        facts = self._facts.get(key)
        if facts is not None and key in self._stored:
            self._leave(key, facts)

    def _leave(self, key: Key, facts: AttemptFacts) -> None:
        """Nothing is left of it in the cluster: it will not be heard of again."""
        if facts.job_gone:
            self._facts.pop(key, None)
            self._stored.discard(key)
            self._forget(key)


def settle(key: Key) -> bool:
    """Mark an attempt as stored if it is, in the database too: no open interval, no log still being read."""
    job_id, attempt = UUID(key[0]), key[1]
    if usage.holds_something(job_id=job_id, attempt_number=attempt):
        return False
    if not logs.all_complete(job_id=job_id, attempt_number=attempt):
        return False
    jobs.mark_stored(job_id=job_id, attempt_number=attempt)
    return True
