"""The writing side of the bus."""

import json
import logging
from collections.abc import Mapping
from functools import lru_cache, partial

import redis
from django.conf import settings
from django.db import transaction

from portal.core.bus.fanout import Message, hub

logger = logging.getLogger(__name__)

STREAM = "beamtime:bus"
# Redis Streams lose nothing to a slow reader where Pub/Sub cuts it off; the length bounds what an absent reader costs.
MAX_LENGTH = 20_000


def announce(topic: str, **facts: object) -> None:
    """Say on `topic`, once the present transaction has committed, that something changed."""
    transaction.on_commit(partial(_publish, topic, facts), robust=True)


def _publish(topic: str, facts: Mapping[str, object]) -> None:
    if not settings.REDIS_URL:
        hub().deliver(Message(topic, facts))
        return
    try:
        fields: dict[str | bytes, str | bytes] = {"topic": topic, "facts": json.dumps(facts)}
        _client(settings.REDIS_URL).xadd(STREAM, fields, maxlen=MAX_LENGTH, approximate=True)  # type: ignore[arg-type]
    except redis.RedisError as error:
        logger.warning("announcement on %s was lost (%s); readers catch up from the store", topic, error)


@lru_cache(maxsize=4)
def _client(url: str) -> "redis.Redis":
    return redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=1)
