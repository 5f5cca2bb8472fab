"""Facts on their way into the rooms: serially for each attempt, many attempts at once, again and again until taken."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from portal.clusters.specs import AttemptFacts
from portal.core.errors import Missing
from portal.core.leases import Fence, FencedOff
from portal.jobs import services as jobs
from portal.usage import services as usage
from portal.watch.desk import DATABASE_DOWN, Backoff, Desk
from portal.watch.facts import Key, joined, key_of

logger = logging.getLogger(__name__)

WORKERS = 4
# Attempts that are written together, where more wait than there are hands: a transaction costs more than what is in it.
TOGETHER = 32
_LONGEST_PAUSE = 15.0


class Applier:
    """`on_applied` is called with facts that both rooms have taken; `on_fenced` when somebody else leads now.

    An attempt that changes faster than it can be written is written once, as it is then: memory is bounded by the
    number of attempts.
    """

    def __init__(
        self,
        *,
        desk: Desk,
        fence: Fence | None,
        on_applied: Callable[[AttemptFacts], None],
        on_fenced: Callable[[], None],
    ) -> None:
        self._desk, self._fence = desk, fence
        self._on_applied, self._on_fenced = on_applied, on_fenced
        self._pending: dict[Key, AttemptFacts] = {}
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        # Attempts that are queued, being written, or resting after a failure.
        self._known: set[Key] = set()
        self._backoffs: dict[Key, Backoff] = {}

    def put(self, facts: AttemptFacts) -> None:
        """Take facts; returns at once."""
        key = key_of(facts)
        self._pending[key] = joined(self._pending.get(key), facts)
        if key not in self._known:
            self._known.add(key)
            self._ready.put_nowait(key)

    def is_idle(self, key: Key) -> bool:
        """Whether the rooms have taken everything that was said about this attempt."""
        return key not in self._known

    async def run(self) -> None:
        """Works until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            keys = [await self._ready.get()]
            while not self._ready.empty() and len(keys) < TOGETHER:
                keys.append(self._ready.get_nowait())
            facts = [self._pending.pop(key) for key in keys]
            troubles: Sequence[Exception | None]
            try:
                troubles = await self._desk.call(apply, facts, fence=self._fence)
            except FencedOff:
                self._on_fenced()
                return
            except Exception as error:
                troubles = [error] * len(facts)
            for key, told, trouble in zip(keys, facts, troubles, strict=True):
                self._done(key, told, trouble)

    def _done(self, key: Key, facts: AttemptFacts, trouble: Exception | None) -> None:
        if trouble is not None:
            self._retry(key, facts, trouble)
            return
        self._backoffs.pop(key, None)
        if key in self._pending:
            self._ready.put_nowait(key)
        else:
            self._known.discard(key)
            self._on_applied(facts)

    def _retry(self, key: Key, facts: AttemptFacts, error: Exception) -> None:
        """The same facts later, joined with what is said meanwhile. Never given up: the next facts may never come."""
        newer = self._pending.get(key)
        self._pending[key] = facts if newer is None else joined(facts, newer)
        first = key not in self._backoffs
        pause = self._backoffs.setdefault(key, Backoff(most=_LONGEST_PAUSE)).pause()
        if isinstance(error, DATABASE_DOWN):
            logger.warning("watch: facts of %s wait for the database (%s)", facts.name, error)
        elif first:
            logger.error("watch: facts of %s were not taken, trying again", facts.name, exc_info=error)
        asyncio.get_running_loop().call_later(pause, self._ready.put_nowait, key)


def apply(many: Sequence[AttemptFacts], *, fence: Fence | None) -> list[Exception | None]:
    """Hand facts about different attempts to the two rooms that they concern; for each, what went wrong, if anything.

    Neither room knows of the other, and neither waits for the other. Raises what concerns them all: `FencedOff`, and a
    database that is down.
    """
    alone = set(range(len(many)))
    if len(many) > 1:
        try:
            alone = set(jobs.observe_all(many, fence=fence))
        except (FencedOff, *DATABASE_DOWN):
            raise
        except Exception:
            logger.warning("watch: facts of %s attempts were not taken together; one by one", len(many), exc_info=True)
    return [_apply(facts, observed=at not in alone, fence=fence) for at, facts in enumerate(many)]


def _apply(facts: AttemptFacts, *, observed: bool, fence: Fence | None) -> Exception | None:
    trouble: Exception | None = None
    try:
        if not observed:
            jobs.observe(facts, fence=fence)
    except Missing:
        logger.warning("watch: %s/%s names a job that does not exist here", facts.namespace, facts.name)
        return None
    except (FencedOff, *DATABASE_DOWN):
        raise
    except Exception as error:
        trouble = error
    try:
        usage.record(facts, fence=fence)
    except (FencedOff, *DATABASE_DOWN):
        raise
    except Exception as error:
        trouble = trouble or error
    return trouble
