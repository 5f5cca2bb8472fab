"""What this process counts about itself, for Prometheus; deploy/README.md has the table of it.

Each is counted in the place that knows. A label has few values, all known beforehand: never a job, a person or a pod.
What is a fact of the database is no number of a process: `web.metrics` asks for it at each scrape.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.multiprocess import MultiProcessCollector

logger = logging.getLogger(__name__)

# The library's own variable, which it reads when the numbers below are made: processes of one pool count into files of
# this folder, and their parent answers for all of them.
POOL_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
if folder := os.environ.get(POOL_FOLDER):
    Path(folder).mkdir(parents=True, exist_ok=True)

# A second series for each counter, that says when it was begun, is worth nothing here.
disable_created_metrics()  # type: ignore[no-untyped-call]

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)


def _counter(name: str, what: str, label: str = "", values: Sequence[str] = ()) -> Counter:
    """`values` are counted from 0, so that the first one is seen as a step."""
    made = Counter(name, what, [label] if label else [], registry=REGISTRY)
    for value in values:
        made.labels(value)
    return made


def _gauge(name: str, what: str, *labels: str) -> Gauge:
    return Gauge(name, what, labels, registry=REGISTRY, multiprocess_mode="livesum")


# --- logs ----------------------------------------------------------------------------------------------------------

LOG_FOLLOWERS = _gauge(
    "beamtime_log_followers",
    "Followers of logs: reading, waiting for a place, pausing before a new try, or standing by for a collector.",
    "state",
)
for _state in ("reading", "waiting", "pausing", "standing_by"):
    LOG_FOLLOWERS.labels(_state)
LOG_REOPENS = _counter(
    "beamtime_log_reopens_total",
    "Logs opened again, by what ended the connection before.",
    "cause",
    ("cut", "timeout", "refused", "not_ready", "end_of_file", "ended", "turn", "overtaken", "database", "fault"),
)
LOG_REPEATS = _counter(
    "beamtime_log_repeats_total",
    "Times that the log endpoint began a file anew on an open connection, as after a rotation.",
)
_SOURCES = ("follower", "collector")
LOG_LINES = _counter("beamtime_log_stored_lines_total", "Lines of logs that were stored.", "source", _SOURCES)
LOG_BYTES = _counter("beamtime_log_stored_bytes_total", "Bytes of logs that were stored.", "source", _SOURCES)
LOG_LAG = Histogram(
    "beamtime_log_lag_seconds",
    "Age of the newest line at the moment when it was stored, for each storing.",
    ["source"],
    buckets=(0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600),
    registry=REGISTRY,
)
for _source in _SOURCES:
    LOG_LAG.labels(_source)
LOG_DAMAGED = _counter("beamtime_log_damaged_reads_total", "Reads that met a stored copy of a log that is damaged.")
OBJECT_STORE_FAULTS = _counter(
    "beamtime_object_store_faults_total", "Requests to the object store of logs that failed."
)
WATCH_LEADING = _gauge("beamtime_watch_leading", "1 in the process that watches the cluster, 0 in a standby.")

# --- collectors ----------------------------------------------------------------------------------------------------

INGEST_REQUESTS = _counter(
    "beamtime_ingest_requests_total",
    "Deliveries of collectors, by the HTTP status they were answered with.",
    "status",
    ("200", "400", "401", "415", "429", "503"),
)
INGEST_RECORDS = _counter(
    "beamtime_ingest_records_total",
    "Records of answered deliveries: accepted, or refused because they are of no job of this portal.",
    "result",
    ("accepted", "refused"),
)

# --- live ----------------------------------------------------------------------------------------------------------

LIVE_VIEWERS = _gauge(
    "beamtime_live_viewers", "Open live connections, by their way and by what they tell of.", "transport", "subject"
)
for _way in (("websocket", "job"), ("websocket", "team"), ("websocket", "log"), ("events", "log")):
    LIVE_VIEWERS.labels(*_way)
LIVE_FRAMES = _counter("beamtime_live_frames_total", "Frames sent to viewers.", "transport", ("websocket", "events"))
LIVE_SKIPS = _counter("beamtime_live_skips_total", "Times that a viewer too slow for a log was taken to its end.")
LIVE_SKIPPED_LINES = _counter("beamtime_live_skipped_lines_total", "Lines that such viewers were told they skip.")

# --- jobs ----------------------------------------------------------------------------------------------------------

JOBS_SUBMITTED = _counter("beamtime_jobs_submitted_total", "Jobs accepted.")
JOBS_ENDED = _counter(
    "beamtime_jobs_ended_total",
    "Jobs that came to their end, by how.",
    "state",
    ("succeeded", "failed", "cancelled", "rejected", "lost"),
)
JOB_DISPATCH = Histogram(
    "beamtime_job_dispatch_seconds",
    "Time from a job's submission to its object in the cluster.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800),
    registry=REGISTRY,
)
JOBS_SWEPT = _counter(
    "beamtime_jobs_swept_total", "Calls to the cluster that a sweep found due: lost hints, and whatever is tried again."
)

# --- what hurries things up ----------------------------------------------------------------------------------------

HINTS_LOST = _counter("beamtime_hints_lost_total", "Hints to workers that found no broker; sweeps do their work.")
ANNOUNCEMENTS_LOST = _counter(
    "beamtime_announcements_lost_total", "Announcements to viewers that found no Redis; viewers look by themselves."
)
BUS_READER_FAULTS = _counter("beamtime_bus_reader_faults_total", "Times that the reader of announcements began anew.")
BUS_LAGGED = _counter(
    "beamtime_bus_lagged_total", "Times that a viewer's queue of announcements was full and it was told to look."
)


def expose() -> None:
    """Answer scrapes on BEAMTIME_METRICS_PORT from a thread of its own; without one nothing is opened.

    A port that cannot be had is said and forgiven: numbers must not keep anything from its work.
    """
    if not settings.BEAMTIME_METRICS_PORT:
        return
    registry = REGISTRY
    if POOL_FOLDER in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        ProcessCollector(registry=registry)
    host, port = settings.BEAMTIME_METRICS_HOST, settings.BEAMTIME_METRICS_PORT
    try:
        start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        logger.error("metrics: port %s of %s cannot be used (%s); going on without", port, host, error)
