"""A job's socket says that something changed; a team's says which job."""

import pytest
from asgiref.sync import sync_to_async
from django.db.models import F

from portal.core import bus
from portal.jobs.models import Job, State
from portal.live import socket as module
from portal.live import teams
from tests.live.conftest import Dial, House, Wire, cookie

pytestmark = pytest.mark.asyncio


async def change(job: Job, state: State, *, announced: bool = True) -> int:
    await Job.objects.filter(pk=job.pk).aupdate(state=state, revision=F("revision") + 1)
    revision: int = await Job.objects.values_list("revision", flat=True).aget(pk=job.pk)
    if announced:
        bus.hub().deliver(bus.Message(f"job:{job.pk}", {"revision": revision, "state": str(state)}))
        bus.hub().deliver(bus.Message(f"team:{job.team_id}", {"job": str(job.pk), "state": str(state)}))
    return revision


async def listen(dial: Dial, house: House, path: str) -> Wire:
    return await dial(path, await sync_to_async(cookie)(house.member))


async def test_a_change_is_told_once_with_its_revision(house: House, dial: Dial) -> None:
    wire = await listen(dial, house, f"/ws/v1/jobs/{house.job.pk}/")
    assert await wire.frame() == {"type": "hello", "revision": 1, "state": "running"}
    revision = await change(house.job, State.SUCCEEDED)
    assert await wire.frame() == {"type": "changed", "revision": revision, "state": "succeeded"}
    bus.hub().deliver(bus.Message(f"job:{house.job.pk}", {"revision": revision, "state": "succeeded"}))
    assert await wire.is_silent()


async def test_costs_and_logs_are_hinted_at(house: House, dial: Dial) -> None:
    wire = await listen(dial, house, f"/ws/v1/jobs/{house.job.pk}/")
    await wire.frame()
    bus.hub().deliver(bus.Message(f"job:{house.job.pk}", {"kind": "cost"}))
    assert await wire.frame() == {"type": "cost"}
    bus.hub().deliver(bus.Message(f"job:{house.job.pk}", {"kind": "log", "stream": "s-1"}))
    assert await wire.frame() == {"type": "log", "stream": "s-1"}


async def test_a_lost_announcement_is_made_up_for(house: House, dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECHECK", 0.2)
    wire = await listen(dial, house, f"/ws/v1/jobs/{house.job.pk}/")
    await wire.frame()
    revision = await change(house.job, State.FAILED, announced=False)
    assert await wire.frame() == {"type": "changed", "revision": revision, "state": "failed"}


async def test_when_announcements_may_be_missing_the_page_is_told_to_look(house: House, dial: Dial) -> None:
    wire = await listen(dial, house, f"/ws/v1/jobs/{house.job.pk}/")
    await wire.frame()
    bus.hub().lag_all()
    assert await wire.frame() == {"type": "changed", "revision": 1, "state": "running"}


async def test_a_team_hears_of_its_own_jobs_only(house: House, dial: Dial) -> None:
    wire = await listen(dial, house, "/ws/v1/teams/vision/")
    assert await wire.frame() == {"type": "hello"}
    await change(house.foreign, State.FAILED)
    await change(house.job, State.SUCCEEDED)
    assert await wire.frame() == {"type": "changed", "job": str(house.job.pk), "state": "succeeded"}
    assert await wire.is_silent()


async def test_many_changes_are_one_frame_and_do_not_wait_for_ever(
    house: House, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teams, "MOST_AT_ONCE", 3)
    wire = await listen(dial, house, "/ws/v1/teams/vision/")
    await wire.frame()
    for number in range(10):
        bus.hub().deliver(bus.Message(f"team:{house.team.pk}", {"job": str(number), "state": "queued"}))
    assert await wire.frame() == {"type": "changed"}
