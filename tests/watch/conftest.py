import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import connections

from portal.jobs.models import Job, State
from portal.teams.models import Membership, Role, Team
from tests import factories
from tests.watch.cluster import FakeCluster


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def job(transactional_db: None) -> Job:
    """Committed, because the watcher writes from threads of its own."""
    site = factories.make_site()
    team = Team.objects.create(slug="vision", name="Vision")
    member = factories.make_user("member")
    Membership.objects.create(team=team, user=member, role=Role.MEMBER)
    return factories.make_job(team, member, site.gpu, state=State.RUNNING, gpu_model="NVIDIA H100")


Until = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 10) -> None:
    """Wait for something to become true; fails after a while."""
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110 - nothing else tells when a row has changed
            await asyncio.sleep(0.01)


@pytest_asyncio.fixture(autouse=True)
async def _connections_are_given_back() -> AsyncIterator[None]:
    """The thread in which a test's own awaited queries run keeps its connection otherwise, and with it the database."""
    yield
    await sync_to_async(connections.close_all)()
