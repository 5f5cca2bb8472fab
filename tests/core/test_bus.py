"""Announcements: in one process, and through a real Redis that may be slow, gone and back."""

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest
from django.db import transaction
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from portal.core.bus import Hub, Message, announce, hub
from portal.core.bus.announce import _publish, _sender
from portal.core.bus.fanout import QUEUE_LENGTH, Subscription
from portal.core.bus.reader import Reader
from tests.support.servers import RedisServer


@pytest.fixture
def with_redis(redis_server: RedisServer, settings: Settings) -> Iterator[RedisServer]:
    settings.REDIS_URL = redis_server.url
    _sender.cache_clear()
    yield redis_server
    if redis_server.process is None:
        redis_server.start()


@pytest.fixture
def read(with_redis: RedisServer) -> Iterator[Callable[[Hub], None]]:
    """Starts readers that are stopped after the test."""
    readers: list[Reader] = []

    def start(fed: Hub) -> None:
        readers.append(Reader(with_redis.url, fed))
        readers[-1].start()

    yield start
    for reader in readers:
        reader.stop()


async def heard(subscription: Subscription, number: int, seconds: float = 10) -> list[Message]:
    async with asyncio.timeout(seconds):
        return [await subscription.get() for _ in range(number)]


async def ready(subscription: Subscription) -> None:
    """Every reader begins by telling its subscribers to look into the store."""
    (first,) = await heard(subscription, 1)
    assert first.lagged


@pytest.mark.asyncio
async def test_in_one_process_everyone_on_the_topic_hears() -> None:
    own = Hub()
    both, one = own.subscribe(["a", "b"]), own.subscribe(["a"])
    own.deliver(Message("a", {"n": 1}))
    own.deliver(Message("b", {"n": 2}))
    own.deliver(Message("c", {"n": 3}))
    assert [message.facts["n"] for message in await heard(both, 2)] == [1, 2]
    assert [message.facts["n"] for message in await heard(one, 1)] == [1]
    both.close()
    one.close()
    assert not own.wants("a")


@pytest.mark.asyncio
async def test_a_slow_reader_is_told_to_look_into_the_store_and_holds_no_queue() -> None:
    own = Hub()
    slow, quick = own.subscribe(["a"]), own.subscribe(["a"])
    got = []
    for number in range(10 * QUEUE_LENGTH):
        own.deliver(Message("a", {"n": number}))
        got += await heard(quick, 1)
    assert [message.facts["n"] for message in got] == list(range(10 * QUEUE_LENGTH))
    left = slow.drain()
    assert len(left) <= QUEUE_LENGTH
    assert left[0].lagged
    assert left[-1].facts["n"] == 10 * QUEUE_LENGTH - 1


@pytest.mark.asyncio
async def test_a_closed_loop_harms_nobody() -> None:
    own = Hub()

    async def subscribe_elsewhere() -> None:
        own.subscribe(["a"])

    await asyncio.to_thread(asyncio.run, subscribe_elsewhere())
    here = own.subscribe(["a"])
    own.deliver(Message("a"))
    await heard(here, 1)
    own.deliver(Message("a"))
    await heard(here, 1)


@pytest.mark.django_db
def test_nothing_is_announced_before_the_commit_or_after_a_rollback(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    told: list[Message] = []
    monkeypatch.setattr(hub(), "deliver", told.append)
    with django_capture_on_commit_callbacks(execute=True):
        announce("a", n=1)
        assert told == []
        try:
            with transaction.atomic():
                announce("a", n=2)
                raise ValueError
        except ValueError:
            pass
    assert told == [Message("a", {"n": 1})]


@pytest.mark.asyncio
async def test_many_subscribers_hear_through_one_connection(read: Callable[[Hub], None]) -> None:
    own = Hub(on_first=read)
    crowd = [own.subscribe(["job:1"]) for _ in range(200)]
    for subscription in crowd:
        await ready(subscription)
    for number in range(100):
        _publish("job:1", {"revision": number})
        _publish("job:2", {"revision": number})
    for subscription in crowd:
        assert [message.facts["revision"] for message in await heard(subscription, 100)] == list(range(100))
        assert subscription.queue.empty()


@pytest.mark.asyncio
async def test_a_slow_subscriber_lags_and_the_others_do_not(read: Callable[[Hub], None]) -> None:
    own = Hub(on_first=read)
    slow, quick = own.subscribe(["a"]), own.subscribe(["a"])
    await ready(quick)
    got = []
    for number in range(3 * QUEUE_LENGTH):
        _publish("a", {"n": number})
        got += await heard(quick, 1)
    assert [message.facts["n"] for message in got] == list(range(3 * QUEUE_LENGTH))
    assert slow.drain()[0].lagged


@pytest.mark.asyncio
async def test_redis_killed_and_restarted_everyone_looks_into_the_store_and_hears_again(
    with_redis: RedisServer, read: Callable[[Hub], None]
) -> None:
    own = Hub(on_first=read)
    subscription = own.subscribe(["a"])
    await ready(subscription)
    _publish("a", {"n": 1})
    assert (await heard(subscription, 1))[0].facts == {"n": 1}
    with_redis.stop()
    _publish("a", {"n": "lost"})
    await asyncio.to_thread(with_redis.start)
    # It came back empty: the old position means nothing any more, and what was announced meanwhile is lost.
    await ready(subscription)
    _publish("a", {"n": 2})
    assert (await heard(subscription, 1))[0].facts == {"n": 2}


@pytest.mark.asyncio
async def test_the_first_subscription_of_a_web_process_starts_its_reader(
    with_redis: RedisServer, read: Callable[[Hub], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from portal.core.bus import process

    monkeypatch.setattr(process, "_read_redis", read)
    hub.cache_clear()
    try:
        subscription = hub().subscribe(["a"])
        await ready(subscription)
        _publish("a", {"n": 1})
        assert (await heard(subscription, 1))[0].facts == {"n": 1}
    finally:
        hub.cache_clear()


@pytest.mark.asyncio
async def test_a_redis_that_is_gone_costs_a_deed_no_time(with_redis: RedisServer) -> None:
    with_redis.stop()
    began = time.perf_counter()
    for _ in range(20):
        _publish("a", {"n": 1})
    assert time.perf_counter() - began < 1.0


@pytest.mark.asyncio
async def test_what_is_not_ours_on_the_stream_is_an_order_to_look(
    with_redis: RedisServer, read: Callable[[Hub], None]
) -> None:
    import redis

    own = Hub(on_first=read)
    subscription = own.subscribe(["a"])
    await ready(subscription)
    client = redis.Redis.from_url(with_redis.url)
    client.xadd("beamtime:bus", {"topic": "a", "facts": "not json"})
    client.xadd("beamtime:bus", {"something": "else"})
    _publish("a", {"n": 1})
    strange, fine = await heard(subscription, 2)
    assert strange.lagged
    assert fine.facts == {"n": 1}
    client.close()
