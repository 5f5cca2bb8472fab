"""Nudges about logs; the rows say what is to be done."""

from uuid import UUID

from celery import shared_task

from portal.logs import services
from portal.logs.services import ingest


@shared_task(name="logs.seal")
def seal() -> None:
    """Compress what has gathered, and prove what is complete."""
    services.seal()


@shared_task(name="logs.expire")
def expire() -> None:
    """Delete what is older than its team's rule."""
    services.expire()


@shared_task(name="logs.number")
def number(stream_id: str) -> None:
    """Number what a collector has delivered for a stream."""
    ingest.number_all(stream_id=UUID(stream_id))


@shared_task(name="logs.number_waiting")
def number_waiting() -> None:
    """Number what had to wait, in all streams."""
    ingest.number_waiting()
