"""A log as Server-Sent Events: the same frames, rights and limits as on a socket, resumed by number."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator

from portal.config.asgi import application
from portal.core import bus
from portal.live import events, reads, seats
from portal.live import socket as module
from portal.logs.models import Stream
from portal.teams import services as teams
from portal.teams.models import Membership, User
from tests import factories
from tests.live.conftest import Dial, House, cookie
from tests.live.test_streams import complete, expire, write

pytestmark = pytest.mark.asyncio


@dataclass
class Answer:
    """An HTTP answer that is still being written."""

    communicator: Any
    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    rest: str = ""
    over: bool = False

    async def head(self) -> None:
        start = await self.communicator.receive_output(timeout=10)
        self.status, self.headers = start["status"], dict(start["headers"])

    async def part(self) -> str:
        message = await self.communicator.receive_output(timeout=10)
        self.over = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body.decode()

    async def event(self) -> dict[str, str]:
        """The next event as its fields; comments are passed over."""
        while True:
            while "\n\n" not in self.rest:
                assert not self.over, "the answer has ended"
                self.rest += await self.part()
            block, self.rest = self.rest.split("\n\n", 1)
            lines = [line.split(": ", 1) for line in block.split("\n") if not line.startswith(":")]
            if lines:
                return {line[0]: line[1] for line in lines}

    async def frame(self) -> Any:
        return json.loads((await self.event())["data"])


Get = Callable[..., Awaitable[Answer]]


@pytest_asyncio.fixture
async def get() -> AsyncIterator[Get]:
    """Asks for events, and leaves those that are left."""
    open_ones: list[Any] = []

    async def ask(path: str, cookies: bytes = b"", method: str = "GET", **headers: bytes) -> Answer:
        raw, _, query = path.partition("?")
        sent = {"host": b"localhost:8000", "cookie": cookies, **headers}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": raw, "raw_path": raw.encode(), "root_path": "", "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value) for name, value in sent.items()],
            "client": ("127.0.0.1", 1), "server": ("localhost", 8000),
        }  # fmt: skip
        answer = Answer(ApplicationCommunicator(application, scope))  # type: ignore[no-untyped-call]
        open_ones.append(answer.communicator)
        await answer.communicator.send_input({"type": "http.request", "body": b"", "more_body": False})
        await answer.head()
        return answer

    yield ask
    for one in open_ones:
        if not one.future.done():
            await one.send_input({"type": "http.disconnect"})
        await one.wait(10)


@pytest.fixture
def stream(house: House) -> Stream:
    return factories.make_stream(house.job)


async def member_cookie(house: House) -> bytes:
    return await sync_to_async(cookie)(house.member)


async def test_the_same_frames_as_a_socket_and_the_end(house: House, get: Get, dial: Dial, stream: Stream) -> None:
    await write(stream, "one", "two\rthree", open_text="fo")
    mine = await member_cookie(house)
    answer = await get(f"/live/v1/streams/{stream.pk}/events", mine)
    assert answer.status == 200
    assert answer.headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert answer.headers[b"cache-control"] == b"no-store, no-transform"
    wire = await dial(f"/ws/v1/streams/{stream.pk}/", mine)
    first = await answer.event()
    assert json.loads(first["data"]) == await wire.frame()
    assert first["id"] == "3"
    await write(stream, "four")
    assert await answer.frame() == await wire.frame()
    await complete(stream)
    assert (await answer.frame())["complete"]
    last = await answer.event()
    assert (last["event"], json.loads(last["data"])["code"]) == ("end", 1000)
    assert answer.over


async def test_case_03_a_client_that_comes_back_gets_each_line_once(house: House, get: Get, stream: Stream) -> None:
    """`Last-Event-ID`, as browsers send it, counts more than the `from` of the first time."""
    await write(stream, "one", "two", "three")
    mine, path = await member_cookie(house), f"/live/v1/streams/{stream.pk}/events?from=2"
    first = await (await get(path, mine)).event()
    assert [row[0] for row in json.loads(first["data"])["lines"]] == [2, 3]
    await write(stream, "four")
    again = await get(path, mine, last_event_id=first["id"].encode())
    assert [row[0] for row in (await again.frame())["lines"]] == [4]


@pytest.mark.parametrize("query", ["?from=0", "?from=-1", "?from=x", "?from=1000000000000000000"])
async def test_a_line_that_is_none_is_refused(house: House, get: Get, stream: Stream, query: str) -> None:
    answer = await get(f"/live/v1/streams/{stream.pk}/events{query}", await member_cookie(house))
    assert answer.status == 400


async def test_case_17_foreign_missing_and_malformed_are_one(house: House, get: Get, stream: Stream) -> None:
    theirs = await sync_to_async(cookie)(house.outsider)
    for key in (stream.pk, "00000000-0000-0000-0000-000000000000", "1", "' or 1=1"):
        answer = await get(f"/live/v1/streams/{key}/events", theirs)
        assert (answer.status, await answer.part()) == (404, "Not found.")
    assert (await get(f"/live/v1/streams/{stream.pk}/events")).status == 401


async def test_a_program_shows_its_token(house: House, get: Get, stream: Stream) -> None:
    await write(stream, "one")
    _token, text = await sync_to_async(teams.issue_token)(
        user=house.member, name="t", scope="read", lifetime=timedelta(days=1)
    )
    path = f"/live/v1/streams/{stream.pk}/events"
    assert (await get(path, authorization=f"Bearer {text}".encode())).status == 200
    assert (await get(path, await member_cookie(house), authorization=b"Bearer wrong")).status == 401


@pytest.mark.parametrize("origin", [b"http://evil.example", b"http://localhost:9000", b"null"])
async def test_case_53_a_foreign_page_gets_nothing(house: House, get: Get, stream: Stream, origin: bytes) -> None:
    path, mine = f"/live/v1/streams/{stream.pk}/events", await member_cookie(house)
    assert (await get(path, mine, origin=origin)).status == 403
    assert (await get(path, mine, sec_fetch_site=b"cross-site")).status == 403
    assert (await get(path, mine, sec_fetch_site=b"same-site")).status == 403
    assert (await get(path, mine, host=b"evil.example")).status == 403
    assert (await get(path, mine, origin=b"http://localhost:8000", sec_fetch_site=b"same-origin")).status == 200


async def test_only_get(house: House, get: Get, stream: Stream) -> None:
    assert (await get(f"/live/v1/streams/{stream.pk}/events", await member_cookie(house), "POST")).status == 405


@sync_to_async
def put_out(user: User) -> None:
    Membership.objects.filter(user=user).delete()
    bus.announce(f"user:{user.pk}", rights=True)


async def test_case_15_the_end_of_a_right_ends_the_stream(house: House, get: Get, stream: Stream) -> None:
    await write(stream, "one")
    answer = await get(f"/live/v1/streams/{stream.pk}/events", await member_cookie(house))
    await answer.frame()
    await put_out(house.member)
    last = await answer.event()
    assert (last["event"], json.loads(last["data"])["code"]) == ("end", 4403)


async def test_case_43_an_expired_log_is_told_as_expired(house: House, get: Get, stream: Stream) -> None:
    await write(stream, "one")
    await sync_to_async(Stream.objects.filter(pk=stream.pk).update)(sha256="ab" * 32)
    mine, path = await member_cookie(house), f"/live/v1/streams/{stream.pk}/events"
    early = await get(path, mine)
    await early.frame()
    words = await expire(stream)
    last = await early.event()
    assert (last["event"], json.loads(last["data"])) == ("end", {"code": 4410, "reason": words})
    late = await get(path, mine)
    assert (late.status, await late.part()) == (410, words)


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_who_reads_nothing_is_let_go_when_the_right_has_ended(
    house: House, stream: Stream, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Nothing can be written to such a client: not what it asked for, not the end."""
    monkeypatch.setattr(module, "PARTING", 0.1)
    monkeypatch.setattr(events, "KEEP_ALIVE", 0.05)
    await write(stream, "one")
    path = f"/live/v1/streams/{stream.pk}/events" if kind == "http" else f"/ws/v1/streams/{stream.pk}/"
    headers = [(b"host", b"localhost:8000"), (b"cookie", await member_cookie(house))]
    scope = {
        "type": kind, "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "path": path,
        "raw_path": path.encode(), "root_path": "", "query_string": b"", "client": ("127.0.0.1", 1),
        "server": ("localhost", 8000), "headers": [*headers, (b"origin", b"http://localhost:8000")],
        "scheme": "http" if kind == "http" else "ws", "subprotocols": [],
    }  # fmt: skip
    said = iter([{"type": "websocket.connect"}] if kind == "websocket" else [])
    stalled = asyncio.Event()

    async def receive() -> Any:
        for message in said:
            return message
        return await asyncio.Future()

    async def send(message: Any) -> None:
        if message["type"] not in ("http.response.start", "websocket.accept"):
            stalled.set()
            await asyncio.Future()

    talk = asyncio.ensure_future(application(scope, receive, send))
    async with asyncio.timeout(20):
        await stalled.wait()
        await put_out(house.member)
        await talk
    assert not seats._taken


async def test_silence_is_kept_alive(house: House, get: Get, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "KEEP_ALIVE", 0.05)
    answer = await get(f"/live/v1/streams/{stream.pk}/events", await member_cookie(house))
    await answer.frame()
    assert await answer.part() == ": keepalive\n\n"
    await write(stream, "one")
    assert (await answer.frame())["to"] == 2


async def test_events_and_sockets_share_one_limit(
    house: House, get: Get, dial: Dial, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats, "MOST", 2)
    mine, path = await member_cookie(house), f"/live/v1/streams/{stream.pk}/events"
    await (await dial(f"/ws/v1/streams/{stream.pk}/", mine)).frame()
    assert (await get(path, mine)).status == 200
    assert (await get(path, mine)).status == 429


@pytest.mark.parametrize("query", ["?from=1&skip=yes", "?from=1"])
async def test_a_viewer_far_behind_is_taken_to_the_end_only_if_it_asked(
    house: House, get: Get, stream: Stream, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(reads, "BEHIND_BYTES", 4000)
    await write(stream, *(f"{n:099}" for n in range(100)))
    answer = await get(f"/live/v1/streams/{stream.pk}/events{query}", await member_cookie(house))
    first = await answer.event()
    if "skip" in query:
        assert json.loads(first["data"]) == {"type": "skipped", "from": 1, "to": 91}
        assert first["id"] == "91"
        frame = await answer.frame()
        assert (frame["from"], frame["to"]) == (91, 101)
    else:
        assert json.loads(first["data"])["from"] == 1


async def test_a_socket_that_talks_too_much_is_closed(house: House, dial: Dial, stream: Stream) -> None:
    """By the number of frames, and by their size, up to 64 MiB; a ping now and then is fine."""
    mine = await member_cookie(house)
    much = "x" * (64 * 2**20)
    for texts in (["x"] * (module.MOST_SAID + 1), ["x" * (module.MOST_SAID_BYTES + 1)], [much], [much[: 2**20]] * 64):
        wire = await dial(f"/ws/v1/streams/{stream.pk}/", mine)
        await wire.frame()
        for text in texts:
            await wire.communicator.send_to(text_data=text)
        assert await wire.code() == 4413
    quiet = await dial(f"/ws/v1/streams/{stream.pk}/", mine)
    await quiet.frame()
    for _ in range(10):
        await quiet.communicator.send_to(text_data="ping")
    await write(stream, "one")
    assert (await quiet.frame())["to"] == 2
