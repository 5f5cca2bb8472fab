"""The Celery application. Tasks are nudges: the rows they work on are found by the sweep all the same."""

import os

from celery import Celery
from kombu.transport.redis import Channel

# Each worker calls it at its start.
import portal.config.outage  # noqa: F401
from portal.config.delivery import ForgivingQoS

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

app = Celery("beamtime")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Pool threads of the embedded mode would otherwise fall back to another application without a broker.
app.set_default()
Channel.QoS = ForgivingQoS
