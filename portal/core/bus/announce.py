"""The writing side of the bus."""

import json
import logging
from collections.abc import Mapping
from functools import lru_cache, partial

import redis
from django.conf import settings
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

from portal.core import metrics
from portal.core.bus.fanout import Message
from portal.core.bus.process import hub
from portal.core.bus.reader import STREAM
from portal.core.rest import Rest

logger = logging.getLogger(__name__)

# Bounds what the stream costs; a reader that falls this far behind reads the store.
MAX_LENGTH = 20_000


def announce(topic: str, **facts: object) -> None:
    """Say on `topic`, once the present transaction has committed, that something changed."""
    transaction.on_commit(partial(_publish, topic, facts), robust=True)


def _publish(topic: str, facts: Mapping[str, object]) -> None:
    if not settings.REDIS_URL:
        hub().deliver(Message(topic, facts))
        return
    sender = _sender(settings.REDIS_URL)
    try:
        sender.send(topic, facts)
    except redis.RedisError as error:
        metrics.ANNOUNCEMENTS_LOST.inc()
        logger.warning("announcement on %s was lost (%s); readers catch up from the store", topic, error)


class _Sender:
    """One connection pool, and the memory of a Redis that hangs."""

    def __init__(self, url: str) -> None:
        # No retries: an announcement is late or lost, and the store has it all.
        self._client: redis.Redis = redis.Redis.from_url(
            url, socket_timeout=1, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0)
        )
        self._rest = Rest(5.0)

    def send(self, topic: str, facts: Mapping[str, object]) -> None:
        """Raises `redis.RedisError`; at once while Redis is known to hang."""
        if self._rest.on:
            raise redis.TimeoutError("Redis did not answer a moment ago")
        fields: dict[str | bytes, str | bytes] = {"topic": topic, "facts": json.dumps(facts)}
        try:
            self._client.xadd(STREAM, fields, maxlen=MAX_LENGTH, approximate=True)  # type: ignore[arg-type]
        except redis.TimeoutError:
            self._rest.begin()
            raise


@lru_cache(maxsize=4)
def _sender(url: str) -> _Sender:
    return _Sender(url)
