"""While the broker is down: a worker looks for due rows by itself, since neither hints nor beat's sweep reach it.

The worker's own process only watches the broker. What it starts for the length of an outage is a fresh process and no
fork, because the worker forks children that must share no database connection with anybody.
"""

import logging
import os
import subprocess
import sys
import threading
import time
from typing import Any

import redis
from celery.signals import worker_init
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

logger = logging.getLogger(__name__)

# Seconds between two looks at the broker.
LOOK = 1.0
# Celery dials a lost broker at growing intervals of up to half a minute; until then nobody else would sweep.
AFTERWARDS = 60.0
_PROGRAM = f"from {__name__} import main; main()"


@worker_init.connect
def _stand_by(**_: Any) -> None:
    """Called in each worker's main process, before it dials: the broker may be down already.

    The embedded worker is called too; its broker is in memory and cannot be down.
    """
    if settings.REDIS_URL:
        threading.Thread(target=_watch_broker, name="broker-outage", daemon=True).start()


def _watch_broker() -> None:
    stand_in: subprocess.Popen[bytes] | None = None
    client = _client()
    while True:
        time.sleep(LOOK)
        idle = stand_in is None or stand_in.poll() is not None
        if idle and not _answers(client):
            logger.warning("the broker does not answer; due jobs are looked for without it")
            # Ends with this process, whose end closes the pipe.
            stand_in = subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE)


def _client() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0)
    )


def _answers(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.RedisError:
        return False
    return True


def main() -> None:
    """Sweep at beat's pace until the broker has been back for a while, or the worker is gone."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    import django  # noqa: PLC0415 - a program of its own: settings first

    django.setup()
    from portal.jobs.services import sweep  # noqa: PLC0415 - models load after the setup

    worker_gone = threading.Event()
    threading.Thread(target=_until_closed, args=(worker_gone,), daemon=True).start()
    client, missed_at = _client(), time.monotonic()
    while (begun := time.monotonic()) - missed_at < AFTERWARDS:
        try:
            sweep()
        except Exception:
            logger.exception("the sweep without a broker failed; trying again")
        # From one begin to the next: what a full sweep takes makes nobody wait longer.
        if worker_gone.wait(max(0.0, begun + settings.BEAMTIME_SWEEP - time.monotonic())):
            return
        if not _answers(client):
            missed_at = time.monotonic()


def _until_closed(closed: threading.Event) -> None:
    sys.stdin.buffer.read()
    closed.set()
