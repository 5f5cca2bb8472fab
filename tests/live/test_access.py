"""Who may listen, from where, and for how long."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.utils import timezone

from portal.config.asgi import application
from portal.core import bus
from portal.jobs.models import Job
from portal.live import seats
from portal.live import socket as module
from portal.logs.models import Stream
from portal.teams import services as teams
from portal.teams.models import ApiToken, Membership, User
from tests import factories
from tests.live.conftest import Dial, House, cookie

pytestmark = pytest.mark.asyncio


async def addresses(house: House) -> list[str]:
    """One address of each kind that belongs to team vision."""
    stream = await sync_to_async(factories.make_stream)(house.job)
    return [f"/ws/v1/jobs/{house.job.pk}/", "/ws/v1/teams/vision/", f"/ws/v1/streams/{stream.pk}/"]


async def test_a_member_and_an_auditor_are_let_in(house: House, dial: Dial) -> None:
    for person in (house.member, house.auditor):
        cookies = await sync_to_async(cookie)(person)
        for path in await addresses(house):
            wire = await dial(path, cookies)
            assert (await wire.frame())["type"] in {"hello", "lines"}


async def test_case_17_foreign_missing_and_malformed_are_refused_alike(house: House, dial: Dial) -> None:
    cookies = await sync_to_async(cookie)(house.outsider)
    paths = await addresses(house)
    for noun in ("jobs", "streams"):
        paths += [f"/ws/v1/{noun}/{uuid4()}/", f"/ws/v1/{noun}/12/", f"/ws/v1/{noun}/%00/", f"/ws/v1/{noun}/"]
    paths += ["/ws/v1/teams/nobody/", "/ws/v1/elsewhere/", "/"]
    for path in paths:
        wire = await dial(path, cookies)
        assert (await wire.code(), wire.frames) == (4404, []), path


async def test_nobody_is_asked_to_sign_in_whatever_the_address(house: House, dial: Dial) -> None:
    for path in [*await addresses(house), f"/ws/v1/jobs/{uuid4()}/", "/ws/v1/streams/x/"]:
        for cookies in (b"", b"sessionid=made-up"):
            assert await (await dial(path, cookies)).code() == 4401


@pytest.mark.parametrize(
    "origin", [b"https://evil.example", b"null", b"http://localhost.evil.example", b"http://localhost:9999", None]
)
async def test_case_53_a_foreign_null_or_missing_origin_is_refused_before_a_byte(
    house: House, origin: bytes | None
) -> None:
    cookies = await sync_to_async(cookie)(house.member)
    for path in [*await addresses(house), "/ws/v1/elsewhere/"]:
        headers = [(b"cookie", cookies), (b"host", b"localhost:8000")]
        if origin is not None:
            headers.append((b"origin", origin))
        communicator = WebsocketCommunicator(application, path, headers=headers)
        connected, _ = await communicator.connect(timeout=10)
        assert not connected
        # The refusal waits for the other side to go.
        await communicator.disconnect()


async def test_a_program_listens_with_its_token_until_it_is_revoked(house: House, dial: Dial) -> None:
    token, text = await sync_to_async(teams.issue_token)(
        user=house.member, name="ci", scope="read", lifetime=timedelta(days=1)
    )
    path = f"/ws/v1/jobs/{house.job.pk}/"
    wire = await dial(path, authorization=f"Bearer {text}".encode())
    assert (await wire.frame())["type"] == "hello"
    await sync_to_async(teams.revoke_token)(user=house.member, token_id=token.pk)
    assert await wire.code() == 4401
    for wrong in (text.encode(), b"Bearer " + text.encode(), b"Bearer bt_nonsense", b"Basic abc"):
        cookies = await sync_to_async(cookie)(house.member)
        assert await (await dial(path, cookies, authorization=wrong)).code() == 4401


async def test_case_15_an_expired_token_ends_the_socket_in_time(
    house: House, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module.RECHECK * 1.1 <= 30
    monkeypatch.setattr(module, "RECHECK", 0.1)
    _, text = await sync_to_async(teams.issue_token)(
        user=house.member, name="ci", scope="read", lifetime=timedelta(days=1)
    )
    wire = await dial(f"/ws/v1/jobs/{house.job.pk}/", authorization=f"Bearer {text}".encode())
    await wire.frame()
    await ApiToken.objects.aupdate(expires_at=timezone.now())
    assert await wire.code() == 4401


async def test_leaving_the_team_closes_every_socket_at_once(house: House, dial: Dial) -> None:
    cookies = await sync_to_async(cookie)(house.member)
    wires = [await dial(path, cookies) for path in await addresses(house)]
    for wire in wires:
        await wire.frame()
    admin = await sync_to_async(factories.make_user)("root", is_superuser=True)
    await sync_to_async(teams.remove_member)(actor=admin, team=house.team, user=house.member)
    assert [await wire.code() for wire in wires] == [4403] * 3


async def test_a_change_that_nobody_announced_is_seen_at_the_next_look(
    house: House, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECHECK", 0.1)
    path = f"/ws/v1/jobs/{house.job.pk}/"
    wires = [await dial(path, await sync_to_async(cookie)(person)) for person in (house.member, house.auditor)]
    for wire in wires:
        await wire.frame()
    await Membership.objects.all().adelete()
    assert await wires[0].code() == 4403
    await User.objects.filter(pk=house.auditor.pk).aupdate(is_active=False)
    assert await wires[1].code() == 4401


async def test_signing_out_ends_the_socket(house: House, dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECHECK", 0.1)
    wire = await dial(f"/ws/v1/jobs/{house.job.pk}/", await sync_to_async(cookie)(house.member))
    await wire.frame()
    await Session.objects.all().adelete()
    await sync_to_async(cache.clear)()
    assert await wire.code() == 4401


async def test_nothing_is_said_after_the_right_has_ended(house: House, dial: Dial) -> None:
    cookies = await sync_to_async(cookie)(house.member)
    wire = await dial(f"/ws/v1/jobs/{house.job.pk}/", cookies)
    await wire.frame()
    await Membership.objects.all().adelete()
    bus.hub().deliver(bus.Message(f"user:{house.member.pk}", {"kind": "rights"}))
    assert (await wire.code(), [frame["type"] for frame in wire.frames]) == (4403, ["hello"])
    await Job.objects.aupdate(revision=99)
    bus.hub().deliver(bus.Message(f"job:{house.job.pk}", {"revision": 99}))
    await asyncio.sleep(0.05)
    assert wire.communicator.output_queue.empty()


async def test_one_person_has_so_many_sockets_and_no_more(
    house: House, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats, "MOST", 2)
    cookies = await sync_to_async(cookie)(house.member)
    path = f"/ws/v1/jobs/{house.job.pk}/"
    first, second = await dial(path, cookies), await dial(path, cookies)
    await first.frame()
    await second.frame()
    assert await (await dial(path, cookies)).code() == 4429
    assert (await (await dial("/ws/v1/teams/vision/", await sync_to_async(cookie)(house.auditor))).frame())["type"]
    await first.leave()
    assert (await (await dial(path, cookies)).frame())["type"] == "hello"


async def test_fifty_sockets_of_one_person_are_served_and_the_next_one_waits_for_a_seat(
    house: House, dial: Dial
) -> None:
    mine, theirs = [await sync_to_async(cookie)(person) for person in (house.member, house.auditor)]
    path = f"/ws/v1/jobs/{house.job.pk}/"
    wires = [await dial(path, mine) for _ in range(seats.MOST)]
    assert [(await wire.frame())["type"] for wire in wires] == ["hello"] * 50
    assert await (await dial(path, mine)).code() == 4429
    assert (await (await dial(path, theirs)).frame())["type"] == "hello"
    bus.hub().deliver(bus.Message(f"job:{house.job.pk}", {"kind": "cost"}))
    assert [(await wire.frame())["type"] for wire in wires] == ["cost"] * 50
    await wires.pop().leave()
    assert (await (await dial(path, mine)).frame())["type"] == "hello"


async def test_sockets_that_ended_leave_nothing_behind(house: House, dial: Dial) -> None:
    cookies = await sync_to_async(cookie)(house.member)
    for path in [*await addresses(house), "/ws/v1/jobs/x/"]:
        wire = await dial(path, cookies)
        await wire.leave()
    assert not seats._taken
    assert not bus.hub()._by_topic
    assert await Stream.objects.acount() == 1
