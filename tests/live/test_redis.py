"""Sockets in production: announcements come through a real Redis, which may die."""

import asyncio
from collections.abc import Iterator

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from portal.core.bus import Hub, hub, process
from portal.core.bus.announce import _sender
from portal.core.bus.reader import Reader
from portal.logs import services
from portal.logs.models import Stream
from portal.logs.specs import Record
from tests import factories
from tests.live.conftest import Dial, House, cookie
from tests.support.servers import RedisServer

pytestmark = pytest.mark.asyncio


@pytest.fixture
def through_redis(
    redis_server: RedisServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RedisServer]:
    settings.REDIS_URL = redis_server.url
    readers: list[Reader] = []

    def read(fed: Hub) -> None:
        readers.append(Reader(redis_server.url, fed))
        readers[-1].start()

    monkeypatch.setattr(process, "_read_redis", read)
    hub.cache_clear()
    _sender.cache_clear()
    yield redis_server
    for reader in readers:
        reader.stop()
    hub.cache_clear()
    if redis_server.process is None:
        redis_server.start()


@sync_to_async
def write(stream: Stream, number: int) -> None:
    assert services.append(stream_id=stream.pk, first_line=number, records=[Record(0, b"line %d\n" % number)])


async def test_lines_go_on_when_redis_was_killed_and_came_back(
    through_redis: RedisServer, house: House, dial: Dial
) -> None:
    stream = await sync_to_async(factories.make_stream)(house.job)
    wire = await dial(f"/ws/v1/streams/{stream.pk}/", await sync_to_async(cookie)(house.member))
    await wire.frame()
    await write(stream, 1)
    assert (await wire.frame())["lines"][0][2] == "line 1"
    await asyncio.to_thread(through_redis.stop)
    await write(stream, 2)
    await asyncio.to_thread(through_redis.start)
    # Nobody announced line 2; the reader that dials Redis anew tells everybody to look.
    assert (await wire.frame())["lines"][0][2] == "line 2"
    await write(stream, 3)
    assert (await wire.frame())["lines"][0][2] == "line 3"
