"""Django's Redis cache with one pool of connections for the whole process."""

from functools import cached_property, lru_cache
from typing import Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import ConnectionError as BrokenConnection
from redis.backoff import NoBackoff
from redis.retry import Retry


class Cache(RedisCache):
    """Under ASGI Django makes each request a cache of its own, which opens a connection and never closes it in order.

    The client below it is safe for threads and after a fork, so one is enough.
    """

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._address = server

    @cached_property
    def _cache(self) -> RedisCacheClient:
        return client(self._address)


@lru_cache(maxsize=4)
def client(address: str) -> RedisCacheClient:
    """A kept connection may be one to a Redis that has been started again since: then it is made anew, once.

    One that hangs is not waited for again: what is cached can be had elsewhere, or is not worth the time.
    """
    retry = Retry(NoBackoff(), 1, supported_errors=(BrokenConnection,))
    return RedisCacheClient([address], socket_timeout=1, socket_connect_timeout=1, retry=retry)
