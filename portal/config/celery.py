"""The Celery application. Tasks are nudges: the rows they work on are found by the sweep all the same."""

import os

from celery import Celery
from kombu.transport.redis import QoS

# Each worker calls it at its start.
import portal.config.outage  # noqa: F401

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

app = Celery("beamtime")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Pool threads of the embedded mode would otherwise fall back to another application without a broker.
app.set_default()
# When the broker goes away under a task, kombu 5.7 tries to give the task back over the line that is gone, and the
# whole worker dies of it. Nothing needs to be given back: the broker does it after its visibility timeout, the sweep
# sooner.
QoS.restore_at_shutdown = False
