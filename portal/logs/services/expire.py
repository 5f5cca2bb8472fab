"""The end of a text's time: the team's rule, or the site's."""

import logging
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from portal.audit.services import record
from portal.core import bus
from portal.core.clock import now
from portal.core.errors import Unavailable
from portal.logs.models import Chunk, Retention, Segment, Stream
from portal.logs.store import objects
from portal.teams.models import Team, User

logger = logging.getLogger(__name__)

# What one transaction touches.
_STREAMS, _SEGMENTS, _CHUNKS = 200, 8, 200


def set_retention(*, actor: User, team: Team, days: int | None) -> None:
    """Keep the logs of a team's jobs for so many days after their end; 0: for ever; None: by the site's rule."""
    with transaction.atomic():
        rows = Retention.objects.filter(team=team)
        before = rows.values_list("days", flat=True).first()
        if before == days:
            return
        if days is None:
            rows.delete()
        else:
            Retention.objects.update_or_create(team=team, defaults={"days": days})
        record(
            actor=actor,
            action="team.log_retention",
            subject=team,
            before={"log_retention_days": before},
            after={"log_retention_days": days},
        )


def expire(*, budget: float = 30.0) -> int:
    """Give up the texts whose time is over, and delete them in small portions. How many streams have newly expired.

    First a stream says that it has expired, then its text goes: nobody ever reads half of one as if it were whole.
    Numbers, bytes, digest and gaps stay.
    """
    deadline = time.monotonic() + budget
    expired = 0
    for due in _due():
        while time.monotonic() < deadline and (ids := list(due.values_list("pk", flat=True)[:_STREAMS])):
            expired += _give_up(ids)
    _purge(deadline)
    return expired


def _due() -> list[QuerySet[Stream]]:
    """The complete streams whose time is over, rule by rule."""
    kept = Stream.objects.filter(expired_at__isnull=True, completed_at__isnull=False)
    moment, found = now(), []
    own = dict(Retention.objects.values_list("team_id", "days"))
    for team_id, days in own.items():
        if days:
            found.append(kept.filter(job__team_id=team_id, job__ended_at__lt=moment - timedelta(days=days)))
    if days := settings.BEAMTIME_LOG_RETENTION_DAYS:
        ended = kept.filter(job__ended_at__lt=moment - timedelta(days=days))
        found.append(ended.exclude(job__team_id__in=list(own)) if own else ended)
    return found


def _give_up(ids: list[UUID]) -> int:
    with transaction.atomic():
        count = Stream.objects.filter(pk__in=ids, expired_at__isnull=True).update(expired_at=now(), open_text="")
        for stream_id in ids:
            bus.announce(f"stream:{stream_id}", expired=True)
    return count


def _purge(deadline: float) -> None:
    """Delete the texts of expired streams. What is left at the deadline, or behind a dead object store, waits.

    First whatever the database holds, of every stream: it must not wait for another place, nor for what is slow there.
    """
    waiting = Stream.objects.filter(expired_at__isnull=False, purged_at__isnull=True).order_by("expired_at")
    chunks, bodies = Chunk.objects.all(), Segment.objects.filter(key="")
    holding = waiting.filter(
        Exists(chunks.filter(stream=OuterRef("pk"))) | Exists(bodies.filter(stream=OuterRef("pk")))
    )
    while ids := list(holding.values_list("pk", flat=True)[:_STREAMS]):
        for stream_id in ids:
            for rows, most in ((bodies, _SEGMENTS), (chunks, _CHUNKS)):
                if not _delete(rows.filter(stream_id=stream_id), most, deadline):
                    return
    elsewhere = Segment.objects.filter(stream=OuterRef("pk"))
    if not objects.in_use():
        waiting.filter(~Exists(elsewhere)).update(purged_at=now())
    try:
        for stream_id in list(waiting.values_list("pk", flat=True)[: _STREAMS * 5]):
            if not _purge_shelf(stream_id, deadline):
                return
    except Unavailable as error:
        # It would not answer for the next stream either.
        logger.warning("logs: expired text waits to be deleted: %s", error)


def _purge_shelf(stream_id: UUID, deadline: float) -> bool:
    """What the object store holds, and then its rows; False if the time ended before that. Raises `Unavailable`."""
    if not objects.shelf().delete(stream_id, deadline=deadline):
        return False
    if not _delete(Segment.objects.filter(stream_id=stream_id), _CHUNKS, deadline):
        return False
    Stream.objects.filter(pk=stream_id).update(purged_at=now())
    return True


def _delete(rows: QuerySet[Any], most: int, deadline: float) -> bool:
    """Delete rows, so many in one transaction; False if the time ended before the rows did."""
    while ids := list(rows.values_list("pk", flat=True)[:most]):
        if time.monotonic() > deadline:
            return False
        rows.filter(pk__in=ids).delete()
    return True
