"""Nudges about queues."""

from celery import shared_task

from portal.quotas import services


@shared_task(name="quotas.synchronise")
def synchronise() -> None:
    """Bring this portal's cluster and its rows in step."""
    services.synchronise_own()
