"""`GET /metrics` for Prometheus: what this process counts, and figures of the database, to who shows the token.

In front of Django, because a scraper asks a pod by its address, which is no host name of the site; and so no session
ever opens it. Without a token in the settings there is no such address.
"""

import asyncio
import hmac
import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, close_old_connections
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from portal.clusters.policy import watch_lease
from portal.core import metrics
from portal.core.clock import now
from portal.core.models import Lease
from portal.jobs.selectors import figures as jobs
from portal.logs import figures as logs

logger = logging.getLogger(__name__)

PATH = "/metrics"
# Seconds that the database has; Prometheus waits for ten.
PATIENCE = 5.0
_SCHEME = b"bearer "


def with_metrics(pages: Any) -> Any:
    """Requests for the metrics are answered here, all others by `pages`; both are ASGI applications."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != PATH or not settings.BEAMTIME_METRICS_TOKEN:
            await pages(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        if scope["method"] not in ("GET", "HEAD"):
            await _answer(send, 405, b"Only GET.\n", allow="GET, HEAD")
        elif not _may(headers.get(b"authorization", b"")):
            words = b"Send: Authorization: Bearer <BEAMTIME_METRICS_TOKEN>.\n"
            await _answer(send, 401, words, **{"www-authenticate": "Bearer"})
        else:
            encode, kind = choose_encoder(headers.get(b"accept", b"").decode("latin-1"))
            await _answer(send, 200, encode(Everything(await _figures_in_time())), kind=kind)

    return application


def _may(given: bytes) -> bool:
    token = given[len(_SCHEME) :].strip()
    known = settings.BEAMTIME_METRICS_TOKEN.encode()
    return given[: len(_SCHEME)].lower() == _SCHEME and hmac.compare_digest(token, known)


async def _figures_in_time() -> list[Metric]:
    """Of a database that hangs no figures: a scraper that waited would get nothing of the process either."""
    try:
        async with asyncio.timeout(PATIENCE):
            # In a thread of its own, so that no page waits for a scrape, nor a scrape for a page.
            return await sync_to_async(_with_connection, thread_sensitive=False)()
    except TimeoutError:
        logger.warning("metrics: the database does not answer in time")
        return [_up(False)]


def _with_connection() -> list[Metric]:
    close_old_connections()
    try:
        return figures()
    finally:
        close_old_connections()


async def _answer(send: Any, status: int, body: bytes, *, kind: str = "text/plain; charset=utf-8", **more: str) -> None:
    headers = {"content-type": kind, "content-length": str(len(body)), "cache-control": "no-store", **more}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


class Everything:
    """What a scrape of a web process gets, as the library's encoders take it."""

    def __init__(self, found: list[Metric]) -> None:
        self._figures = found

    def collect(self) -> Iterator[Metric]:
        yield from metrics.REGISTRY.collect()
        yield from self._figures


def figures() -> list[Metric]:
    """Facts of the database, the same from every web process. Seven queries, however much there is."""
    try:
        return [_up(True), *_figures(now())]
    except DatabaseError as error:
        logger.warning("metrics: the database does not answer (%s)", error)
        return [_up(False)]


def _up(answers: bool) -> Metric:
    what = "1 while the database answers; without it the figures below are missing."
    return _one("beamtime_database_up", what, float(answers))


def _figures(moment: datetime) -> Iterator[Metric]:
    yield _by("beamtime_jobs_active", "Jobs that are not over.", "state", jobs.active_by_state())
    yield _one(
        "beamtime_jobs_oldest_submitted_seconds",
        "Age of the job that has waited longest for its object in the cluster; 0 without one.",
        _age(jobs.oldest_submitted(), moment),
    )
    due = jobs.due()
    yield _one("beamtime_dispatch_due", "Attempts with a call to the cluster due that nobody has claimed.", due.rows)
    yield _one(
        "beamtime_dispatch_oldest_due_seconds", "For how long the oldest of them is due.", _age(due.since, moment)
    )
    streams = logs.unproved()
    yield _one("beamtime_log_streams_open", "Logs that have no end yet.", streams.open)
    yield _one("beamtime_log_streams_unsealed", "Logs that have their end and no digest yet.", streams.unsealed)
    yield _by("beamtime_log_gaps", "Gaps in logs, by their cause.", "cause", logs.gaps_by_cause())
    yield _one(
        "beamtime_ingest_parcels", "Deliveries of collectors that wait for their numbers.", logs.parcels_waiting()
    )
    lease = Lease.objects.filter(name=watch_lease(settings.BEAMTIME_CLUSTER_NAME)).first()
    left = (lease.expires_at - moment).total_seconds() if lease is not None else float("-inf")
    yield _one(
        "beamtime_watch_lease_seconds", "For how long somebody watches the cluster still; below 0: nobody does.", left
    )


def _one(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(name, what, value=value)


def _by(name: str, what: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, what, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _age(since: datetime | None, moment: datetime) -> float:
    return 0.0 if since is None else max(0.0, (moment - since).total_seconds())
