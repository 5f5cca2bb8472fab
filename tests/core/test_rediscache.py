"""What is cached in Redis: asked over few connections, and never waited for long."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from asgiref.sync import async_to_sync
from django.core.cache import caches

from portal.core import rediscache
from tests.support.servers import RedisServer


@pytest.fixture(autouse=True)
def _cache(settings: Any, redis_server: RedisServer) -> Iterator[None]:
    settings.CACHES = {"default": {"BACKEND": "portal.core.rediscache.Cache", "LOCATION": redis_server.url}}
    rediscache.client.cache_clear()
    yield
    rediscache.client.cache_clear()


def ask_as_a_request() -> None:
    """Each runs in a context of its own, for which Django makes a cache of its own."""

    async def request() -> None:
        cache = caches["default"]
        cache.set("seat", 7)
        assert cache.get("seat") == 7

    async_to_sync(request)()


def connections_made(server: RedisServer) -> int:
    with redis.Redis.from_url(server.url) as client:
        found: Any = client.info("stats")
        return int(found["total_connections_received"])


def test_requests_share_their_connections(redis_server: RedisServer) -> None:
    ask_as_a_request()
    before = connections_made(redis_server)
    for _ in range(20):
        ask_as_a_request()
    # Who counts is one of them.
    assert connections_made(redis_server) == before + 1


def test_a_redis_that_was_started_again_is_found_at_once(redis_server: RedisServer) -> None:
    ask_as_a_request()
    redis_server.stop()
    with pytest.raises(redis.ConnectionError):
        ask_as_a_request()
    redis_server.start()
    ask_as_a_request()


def test_a_redis_that_hangs_is_given_up(redis_server: RedisServer) -> None:
    ask_as_a_request()
    assert redis_server.process is not None
    redis_server.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(redis.TimeoutError):
            ask_as_a_request()
    finally:
        redis_server.process.send_signal(signal.SIGCONT)
