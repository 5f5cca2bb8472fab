"""For load balancers and probes: does this process answer, and can it do its work. They say nothing about anybody."""

import logging
from datetime import timedelta

import redis
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal.clusters.policy import watch_lease
from portal.core.clock import now
from portal.core.models import Lease

logger = logging.getLogger(__name__)


@never_cache
@require_safe
def alive(request: HttpRequest) -> JsonResponse:
    """This process answers; nothing else is asked."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 while pages can be shown, else 503. Broker and watch are reported; pages work without them for a while."""
    database, files = _database(), _files()
    watch = _watch() if database == "ok" else "unknown"
    parts = {"database": database, "files": files, "broker": _broker(), "watch": watch}
    status = "ok" if all(part in ("ok", "none") for part in parts.values()) else "degraded"
    able = database == files == "ok"
    if not able:
        status = "unavailable"
    return JsonResponse({"status": status, **parts}, status=200 if able else 503)


def _files() -> str:
    """Whether the style sheets and scripts are where pages look for them: a server collects them once per version."""
    try:
        staticfiles_storage.url("css/web.css")
    except ValueError:
        return "missing: run manage.py collectstatic"
    return "ok"


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        logger.warning("the database does not answer: %s", error)
        return "unreachable"
    return "ok"


def _broker() -> str:
    """ "none": this mode has its broker in the same process."""
    if not settings.REDIS_URL:
        return "none"
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1) as client:
            client.ping()
    except redis.RedisError as error:
        logger.warning("the broker does not answer: %s", error)
        return "unreachable"
    return "ok"


def _watch() -> str:
    """Whether somebody watches the cluster: its lease is renewed several times within its life."""
    lease = Lease.objects.filter(name=watch_lease(settings.BEAMTIME_CLUSTER_NAME)).first()
    if lease is None:
        return "never seen"
    age = now() - lease.expires_at
    return "ok" if age < timedelta(0) else f"silent for {int(age.total_seconds()) + settings.BEAMTIME_LEASE} s"
