"""Nudges about jobs; the rows say what is to be done."""

from celery import shared_task

from portal.jobs import services


@shared_task(name="jobs.dispatch")
def dispatch(attempt_id: int) -> None:
    """Do what is due for one attempt."""
    services.dispatch(attempt_id)


@shared_task(name="jobs.sweep")
def sweep() -> None:
    """Do everything that is due."""
    services.sweep()


@shared_task(name="jobs.collect_finished")
def collect_finished() -> None:
    """Let go of finished objects."""
    services.collect_finished()
