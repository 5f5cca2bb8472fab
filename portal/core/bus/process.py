"""The one hub of this process, fed from Redis where there is one."""

from functools import lru_cache

from django.conf import settings

from portal.core.bus.fanout import Hub
from portal.core.bus.reader import Reader


@lru_cache(maxsize=1)
def hub() -> Hub:
    """The hub of this process. Its reader starts with the first subscription, so only a web process has one."""
    return Hub(on_first=_read_redis if settings.REDIS_URL else None)


def _read_redis(fed: Hub) -> None:
    Reader(settings.REDIS_URL, fed).start()
