"""The Celery application. Tasks are nudges: the rows they work on are found by the sweep all the same."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init
from django.conf import settings
from kombu.transport.redis import Channel

# Each worker calls it at its start.
import portal.config.outage  # noqa: F401
from portal.config.delivery import ForgivingQoS
from portal.core import metrics

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

app = Celery("beamtime")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Pool threads of the embedded mode would otherwise fall back to another application without a broker.
app.set_default()
Channel.QoS = ForgivingQoS


@worker_init.connect
def _show_metrics(**_: Any) -> None:
    """In each worker's main process, which answers for its children. Those of the embedded one are shown by web."""
    if not settings.EMBEDDED:
        metrics.expose()
