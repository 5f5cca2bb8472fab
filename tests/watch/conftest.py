import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import connections

from portal.core import leases
from portal.core.clock import now
from portal.jobs.models import Job, State
from portal.teams.models import Membership, Role, Team
from tests import factories
from tests.watch.cluster import FakeCluster

# As Kubernetes has it by default (containerLogMaxSize).
FILE_BYTES = 10 * 1024 * 1024


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


async def true(value: bool) -> bool:
    """For `until`: what is known without asking the database."""
    return value


@dataclass
class Looks:
    """Every question for a lease: who asked, when, and whether it led from then on."""

    asked: list[tuple[str, datetime, bool]] = field(default_factory=list)

    def refused(self, *, after: datetime | None = None) -> int:
        """How often somebody was told that another one leads, at any time or after this one."""
        return sum(not leads and (after is None or moment > after) for _holder, moment, leads in self.asked)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    found, take = Looks(), leases.take

    def counted(*, name: str, holder: str, ttl: timedelta) -> leases.Fence | None:
        moment = now()
        fence = take(name=name, holder=holder, ttl=ttl)
        found.asked.append((holder, moment, fence is not None))
        return fence

    monkeypatch.setattr(leases, "take", counted)
    return found


@pytest_asyncio.fixture(autouse=True)
async def _connections_are_given_back() -> AsyncIterator[None]:
    """The thread in which a test's own awaited queries run keeps its connection otherwise, and with it the database."""
    yield
    await sync_to_async(connections.close_all)()
