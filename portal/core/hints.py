"""Hurrying things up. A hint is never the only copy of an intent: a sweep finds what a lost hint missed."""

import logging
from functools import partial

from celery import current_app
from django.conf import settings
from django.db import transaction

from portal.core import metrics
from portal.core.rest import Rest

logger = logging.getLogger(__name__)

_broker = Rest(5.0)


def nudge(task: str, *args: object) -> None:
    """Send the Celery task of this name once the present transaction has committed.

    A broker that is down is logged and forgiven, because every nudged task has a sweep behind it.
    """
    transaction.on_commit(partial(_send, task, args), robust=True)


def _send(task: str, args: tuple[object, ...]) -> None:
    if _broker.on:
        metrics.HINTS_LOST.inc()
        logger.info("hint %s was not sent, because the broker did not answer a moment ago", task)
        return
    try:
        current_app.send_task(task, args=args, retry=False, ignore_result=True, countdown=settings.HINT_DELAY or None)
    except Exception as error:  # the broker's client raises many kinds; none may harm the committed deed
        _broker.begin()
        metrics.HINTS_LOST.inc()
        logger.warning("hint %s was not sent (%s); the sweep will find the row", task, error)
