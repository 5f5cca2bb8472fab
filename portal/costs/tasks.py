"""The tasks of costs."""

from celery import shared_task

from portal.costs import services


@shared_task(name="costs.rate")
def rate() -> None:
    """Charge what was closed since the last time."""
    services.rate()
