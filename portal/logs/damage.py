"""A stored copy that is not what was sealed, told to people in a sentence and to the operator in detail, once."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from portal.core import metrics
from portal.core.errors import Corrupt, Gone
from portal.logs.models import Stream
from portal.logs.store import Damaged

logger = logging.getLogger(__name__)

WORDS = "This log's stored copy is damaged; an administrator can see which with `manage.py check_logs`."
# Streams that this process has told of already: whoever looks at a damaged log looks again and again.
_told: dict[UUID, None] = {}
_MOST_TOLD = 1000


@contextmanager
def told(stream_id: UUID) -> Iterator[None]:
    """Reading of a stream: `Damaged` inside becomes `Corrupt`, counted each time and logged once.

    Of a text that has expired meanwhile nothing fits together any more: that is `Gone`.
    """
    try:
        yield
    except Damaged as error:
        if Stream.objects.filter(pk=stream_id, expired_at__isnull=False).exists():
            raise Gone("This log has expired.") from error
        note(stream_id, error)
        raise Corrupt(WORDS) from error


def note(stream_id: UUID, error: Damaged) -> None:
    """Count it, and tell the operator of each stream once in the life of this process."""
    metrics.LOG_DAMAGED.inc()
    if stream_id not in _told:
        if len(_told) >= _MOST_TOLD:
            _told.clear()
        _told[stream_id] = None
        logger.error("logs: the stored copy of stream %s is damaged: %s", stream_id, error)
