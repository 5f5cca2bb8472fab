"""One leader per cluster. Standbys wait for the lease; a leader that cannot renew it stops by itself."""

import asyncio
import logging
import os
import secrets
import socket
from datetime import timedelta

from portal.clusters.policy import watch_lease
from portal.core import leases
from portal.watch.desk import DATABASE_DOWN, Backoff, Desk, wait_for

logger = logging.getLogger(__name__)

# How often a standby looks whether the lease has run out.
_STANDBY_LOOKS = 1.0


class Leadership:
    """The lease of a cluster's watcher, held by this process for `ttl` seconds at a time."""

    def __init__(self, *, cluster: str, ttl: float, desk: Desk) -> None:
        self._name = watch_lease(cluster)
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._ttl = ttl
        self._desk = desk
        self._good_until = 0.0

    async def acquire(self, stop: asyncio.Event) -> leases.Fence | None:
        """Wait until this process leads; None once `stop` is set. A database that is down is waited for."""
        backoff = Backoff(most=_STANDBY_LOOKS * 2)
        while not stop.is_set():
            try:
                fence = await self._take()
            except DATABASE_DOWN as error:
                logger.warning("watch: no lease yet, the database does not answer (%s)", error)
                await wait_for(stop, backoff.pause())
                continue
            if fence is not None:
                logger.info("watch: leading %s, epoch %s", fence.name, fence.epoch)
                return fence
            await wait_for(stop, min(_STANDBY_LOOKS, self._ttl / 3))
        return None

    async def keep(self, fence: leases.Fence) -> None:
        """Renew the lease at a third of its time; returns only when it is lost."""
        loop = asyncio.get_running_loop()
        pause = self._ttl / 3
        while True:
            await asyncio.sleep(pause)
            try:
                # A database that hangs must not keep a leader in office beyond its time.
                async with asyncio.timeout_at(self._good_until):
                    present = await self._take()
            except (TimeoutError, *DATABASE_DOWN) as error:
                if loop.time() >= self._good_until:
                    logger.warning("watch: %s is lost, it could not be renewed (%s)", fence.name, error)
                    return
                pause = min(1.0, self._ttl / 10)
                continue
            if present != fence:
                logger.warning("watch: %s is lost to somebody else", fence.name)
                return
            pause = self._ttl / 3

    async def release(self) -> None:
        """Give the lease back, so that a standby need not wait for its end."""
        try:
            await self._desk.call(leases.release, name=self._name, holder=self._holder)
        except DATABASE_DOWN as error:
            logger.warning("watch: the lease was not given back (%s); it runs out by itself", error)

    async def _take(self) -> leases.Fence | None:
        asked_at = asyncio.get_running_loop().time()
        ttl = timedelta(seconds=self._ttl)
        fence = await self._desk.call(leases.take, name=self._name, holder=self._holder, ttl=ttl)
        if fence is not None:
            # Counted from before the question: the database's clock may have started then.
            self._good_until = asked_at + self._ttl
        return fence
