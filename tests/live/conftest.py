"""A committed site, and sockets on the portal's real ASGI application with a real session cookie."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.db import connections
from django.test import Client

from portal.config.asgi import application
from portal.jobs.models import Job, State
from portal.teams.models import Membership, Role, Team, User
from tests import factories

ORIGIN = b"http://localhost:8000"


@dataclass
class House:
    """Two teams with a person and a job each."""

    team: Team
    member: User
    outsider: User
    auditor: User
    job: Job
    foreign: Job


@pytest.fixture
def house(transactional_db: None) -> House:
    site = factories.make_site()
    people = {}
    for slug, name in (("vision", "member"), ("language", "outsider")):
        team = Team.objects.create(slug=slug, name=slug.title())
        people[name] = factories.make_user(name)
        Membership.objects.create(team=team, user=people[name], role=Role.MEMBER)
    vision, language = Team.objects.get(slug="vision"), Team.objects.get(slug="language")
    return House(
        team=vision,
        member=people["member"],
        outsider=people["outsider"],
        auditor=factories.make_user("auditor", is_auditor=True),
        job=factories.make_job(vision, people["member"], site.gpu, state=State.RUNNING),
        foreign=factories.make_job(language, people["outsider"], site.gpu, state=State.RUNNING),
    )


def cookie(user: User | None) -> bytes:
    """The cookie that a browser of this person sends."""
    client = Client()
    if user is None:
        return b""
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}".encode()


@dataclass
class Wire:
    """A connected socket."""

    communicator: Any
    frames: list[Any] = field(default_factory=list)
    reason: str = ""

    async def frame(self, seconds: float = 10) -> Any:
        """The next frame."""
        found = await self.communicator.receive_json_from(timeout=seconds)
        self.frames.append(found)
        return found

    async def code(self, seconds: float = 10) -> int:
        """The code that the socket is closed with; frames before it are kept in `frames`."""
        while True:
            message = await self.communicator.receive_output(timeout=seconds)
            if message["type"] == "websocket.close":
                code: int = message["code"]
                self.reason = message.get("reason", "")
                return code
            self.frames.append(message)

    async def is_silent(self) -> bool:
        found: bool = await self.communicator.receive_nothing(timeout=0.3)
        return found

    async def leave(self) -> None:
        await self.communicator.disconnect()


Dial = Callable[..., Awaitable[Wire]]


@pytest_asyncio.fixture
async def dial() -> AsyncIterator[Dial]:
    """Opens sockets, and closes those that are left."""
    wires: list[Wire] = []

    async def open_socket(path: str, cookies: bytes = b"", **headers: bytes) -> Wire:
        sent = {"origin": ORIGIN, "host": b"localhost:8000", **headers}
        pairs = [(name.encode(), value) for name, value in sent.items()]
        communicator = WebsocketCommunicator(application, path, headers=[*pairs, (b"cookie", cookies)])
        connected, _ = await communicator.connect(timeout=10)
        assert connected
        wires.append(Wire(communicator))
        return wires[-1]

    yield open_socket
    for wire in wires:
        await wire.leave()


@pytest_asyncio.fixture(autouse=True)
async def _connections_are_given_back() -> AsyncIterator[None]:
    """The thread in which a test's own awaited queries run keeps its connection otherwise, and with it the database."""
    yield
    await sync_to_async(connections.close_all)()
