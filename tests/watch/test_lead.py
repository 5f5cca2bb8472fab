"""One watcher leads, the others stand by; nobody leads without knowing that it still does."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import OperationalError

from portal.core import leases
from portal.core.models import Lease
from portal.watch.desk import Desk
from portal.watch.leader import Leadership
from tests.watch.conftest import Looks, true, until

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    found = Desk("test", 2)
    yield found
    await found.close()


def candidate(desk: Desk, ttl: float = 0.6) -> Leadership:
    return Leadership(cluster="default", ttl=ttl, desk=desk)


async def test_a_standby_waits_and_takes_over_when_the_lease_runs_out(desk: Desk, looks: Looks) -> None:
    stop = asyncio.Event()
    first, second = candidate(desk), candidate(desk)
    fence = await first.acquire(stop)
    assert fence is not None
    would_end = (await Lease.objects.aget(name=fence.name)).expires_at
    keeping = asyncio.create_task(first.keep(fence))
    waiting = asyncio.create_task(second.acquire(stop))
    # It was looked at when it would have been over, and had been renewed.
    await until(lambda: true(looks.refused(after=would_end) > 0))
    assert not waiting.done()
    keeping.cancel()
    async with asyncio.timeout(5):
        taken = await waiting
    assert taken == leases.Fence("watch:default", fence.epoch + 1)


async def test_a_lease_that_is_given_back_is_taken_at_once(desk: Desk, looks: Looks) -> None:
    stop = asyncio.Event()
    first, second = candidate(desk, 60), candidate(desk, 60)
    assert await first.acquire(stop) is not None
    waiting = asyncio.create_task(second.acquire(stop))
    await until(lambda: true(looks.refused() > 0))
    await first.release()
    async with asyncio.timeout(5):
        assert await waiting is not None


async def test_a_leader_that_slept_too_long_knows_that_it_is_out(desk: Desk) -> None:
    first = candidate(desk)
    fence = await first.acquire(asyncio.Event())
    assert fence is not None
    await Lease.objects.aupdate(expires_at="2020-01-01T00:00:00Z")
    await sync_to_async(leases.take)(name="watch:default", holder="other", ttl=timedelta(seconds=60))
    async with asyncio.timeout(5):
        await first.keep(fence)


async def test_a_leader_without_a_database_stops_when_its_time_is_over(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = candidate(desk, 0.5)
    fence = await first.acquire(asyncio.Event())
    assert fence is not None

    def down(**_given: object) -> None:
        raise OperationalError("the database system is shutting down")

    monkeypatch.setattr(leases, "take", down)
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(5):
        await first.keep(fence)
    assert asyncio.get_running_loop().time() - began < 1.5


async def test_a_candidate_waits_for_a_database_and_can_be_told_to_stop(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = leases.take, []

    def down_twice(*, name: str, holder: str, ttl: timedelta) -> leases.Fence | None:
        asked.append(name)
        if len(asked) < 3:
            raise OperationalError("the database system is starting up")
        return real(name=name, holder=holder, ttl=ttl)

    monkeypatch.setattr(leases, "take", down_twice)
    async with asyncio.timeout(10):
        assert await candidate(desk, 60).acquire(asyncio.Event()) is not None
    stop = asyncio.Event()
    waiting = asyncio.create_task(candidate(desk, 60).acquire(stop))

    async def has_asked() -> bool:
        return len(asked) > 3

    await until(has_asked)
    stop.set()
    async with asyncio.timeout(5):
        assert await waiting is None
