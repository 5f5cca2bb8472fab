"""The watcher of one cluster: facts down into the rooms, logs into the store, under one fenced leader."""

import asyncio
import contextlib
import logging

from django.conf import settings

from portal.clusters.gateway import Backend, backend_of
from portal.clusters.models import Cluster
from portal.core import metrics
from portal.core.leases import Fence, FencedOff
from portal.jobs import selectors as jobs
from portal.usage import services as usage
from portal.watch.applier import Applier
from portal.watch.desk import DATABASE_DOWN, Backoff, Desk, wait_for
from portal.watch.facts import Key, key_of
from portal.watch.followers import Followers
from portal.watch.leader import Leadership
from portal.watch.recall import Open, completed, recall
from portal.watch.settler import Settler

logger = logging.getLogger(__name__)

# Seconds between two looks at which objects should exist, and between two comparisons of intervals with pods.
EXPECT = 10.0
RECONCILE = 60.0
_FACT_THREADS = 4
_LOG_THREADS = 4


async def run(cluster: str, stop: asyncio.Event) -> None:
    """Watch the cluster of this name until `stop` is set; lead it whenever nobody else does.

    Waits for a database that is down and for a cluster row that is not there yet. When stopped, what is at hand is
    stored first.
    """
    desks = {"lease": Desk("lease", 1), "facts": Desk("facts", _FACT_THREADS), "logs": Desk("logs", _LOG_THREADS)}
    try:
        backend = await _backend(cluster, desks["facts"], stop)
        leadership = Leadership(cluster=cluster, ttl=settings.BEAMTIME_LEASE, desk=desks["lease"])
        while backend is not None and not stop.is_set():
            fence = await leadership.acquire(stop)
            if fence is None:
                break
            term = _Term(cluster, backend, fence, facts_desk=desks["facts"], logs_desk=desks["logs"])
            with metrics.WATCH_LEADING.track_inprogress():
                await term.serve(leadership, stop)
    finally:
        await asyncio.gather(*(desk.close() for desk in desks.values()))


async def _backend(cluster: str, desk: Desk, stop: asyncio.Event) -> Backend | None:
    backoff = Backoff(most=5.0)
    while not stop.is_set():
        try:
            return backend_of(await desk.call(Cluster.objects.get, name=cluster))
        except Cluster.DoesNotExist:
            logger.warning("watch: there is no cluster %s yet", cluster)
        except DATABASE_DOWN as error:
            logger.warning("watch: the database does not answer (%s)", error)
        await wait_for(stop, backoff.pause())
    return None


class _Term:
    """One time in office: everything in it bears the fence, and ends with it."""

    def __init__(self, cluster: str, backend: Backend, fence: Fence, *, facts_desk: Desk, logs_desk: Desk) -> None:
        self._cluster, self._backend, self._fence, self._desk = cluster, backend, fence, facts_desk
        self._over = asyncio.Event()
        self._recalled: dict[Key, Open] = {}
        self._applier = Applier(
            desk=facts_desk,
            fence=fence,
            on_applied=lambda facts: self._settler.look(key_of(facts)),
            on_fenced=self._over.set,
        )
        self._followers = Followers(
            backend=backend,
            desk=logs_desk,
            fence=fence,
            on_done=self._log_done,
            on_fenced=self._over.set,
            file_bytes=settings.BEAMTIME_LOG_FILE_BYTES,
        )
        self._settler = Settler(
            desk=facts_desk,
            is_applied=self._applier.is_idle,
            logs_done=self._followers.are_done,
            forget=self._followers.forget,
        )

    async def serve(self, leadership: Leadership, stop: asyncio.Event) -> None:
        """Work until the lease is lost, then drop everything at once; or until `stop`, then finish what is at hand."""
        work = (self._observe(), self._applier.run(), self._expect(), self._reconcile())
        tasks: list[asyncio.Task[None]] = [asyncio.create_task(each) for each in (leadership.keep(self._fence), *work)]
        ends = [asyncio.ensure_future(event.wait()) for event in (stop, self._over)]
        try:
            await asyncio.wait([*tasks, *ends], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done() and not task.cancelled() and task.exception() is not None:
                    logger.error("watch: a part of the watcher failed; starting anew", exc_info=task.exception())
            if stop.is_set():
                # The observer goes first, so that nothing new begins; the lease is kept until the last line is stored.
                tasks[1].cancel()
                await self._followers.close()
        finally:
            for each in (*tasks, *ends):
                each.cancel()
            await asyncio.gather(*tasks, *ends, return_exceptions=True)
            await self._followers.abandon()
            await self._settler.close()
            if not self._over.is_set():
                await leadership.release()

    async def _observe(self) -> None:
        backoff = Backoff()
        await self._recall()
        await self._tell_expected()
        while True:
            try:
                async with contextlib.aclosing(self._backend.observe()) as seen:  # type: ignore[type-var]
                    async for told in seen:
                        backoff.reset()
                        facts = completed(told, self._recalled)
                        self._settler.see(facts)
                        self._applier.put(facts)
                        self._followers.see(facts)
                logger.warning("watch: %s stopped telling; asking again", self._cluster)
            except Exception:
                logger.exception("watch: %s cannot be observed; trying again", self._cluster)
            await asyncio.sleep(backoff.pause())

    async def _recall(self) -> None:
        """Before the cluster is heard: afterwards what is open may be our own."""
        backoff = Backoff()
        while True:
            try:
                self._recalled = await self._desk.call(recall, self._cluster)
                return
            except DATABASE_DOWN as error:
                logger.warning("watch: what is open is not known yet (%s)", error)
                await asyncio.sleep(backoff.pause())

    async def _expect(self) -> None:
        while True:
            await asyncio.sleep(EXPECT)
            await self._tell_expected()

    async def _tell_expected(self) -> None:
        """What should exist, and what was left open and must be asked for although nothing of it may be left."""
        try:
            expected = await self._desk.call(jobs.expected_objects, self._cluster)
        except DATABASE_DOWN as error:
            logger.warning("watch: the expected objects are not known (%s)", error)
            return
        self._backend.expect({left.place: key for key, left in self._recalled.items()} | expected)

    async def _reconcile(self) -> None:
        while True:
            await asyncio.sleep(RECONCILE)
            self._settler.look_at_all()
            try:
                await self._desk.call(usage.reconcile, present=self._settler.present(), fence=self._fence)
            except FencedOff:
                self._over.set()
                return
            except DATABASE_DOWN as error:
                logger.warning("watch: intervals wait for the database (%s)", error)

    def _log_done(self, key: Key) -> None:
        self._settler.look(key)
