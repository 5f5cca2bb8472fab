"""`POST /ingest/v1/logs`: OTLP over HTTP in JSON, as the OpenTelemetry Collector's `otlp_http` exporter sends it.

Answers as OTLP asks: 200 when all is kept, 400 for what will never be taken, 429 and 503 for what may be sent again.
"""

import gzip
import hmac
import io
import json
import logging
import zlib
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings
from django.db import OperationalError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from portal.core import metrics
from portal.core.errors import Unavailable
from portal.ingest.otlp import Malformed, delivery_of
from portal.logs.services import ingest

logger = logging.getLogger(__name__)

# Of one request, as it comes and unpacked. A collector's batch is far smaller (see deploy/README.md).
MOST_BYTES, MOST_UNPACKED = 8 * 1024 * 1024, 64 * 1024 * 1024
# Of one process. JSON takes six times its size in memory, and the oddest of it 25 times.
MOST_AT_ONCE = 4
# Seconds for which a delivery waits for one of these seats.
PATIENCE = 1.0
_seats = BoundedSemaphore(MOST_AT_ONCE)
_SCHEME = "bearer "
# Names the process of the collector: another one after each start.
_SENDER = "X-Beamtime-Start"
# Seconds.
_LATER = "5"


@csrf_exempt
@require_POST
def logs(request: HttpRequest) -> JsonResponse:
    """Keep what a collector delivers."""
    answer = _answer(request)
    metrics.INGEST_REQUESTS.labels(str(answer.status_code)).inc()
    return answer


def _answer(request: HttpRequest) -> JsonResponse:
    if not _may(request):
        return _refusal(401, "Send: Authorization: Bearer <one of BEAMTIME_INGEST_TOKENS>.")
    if request.content_type != "application/json":
        return _refusal(415, "Send JSON: the exporter's `encoding` must be `json`.")
    # Until it is kept and its memory is free again.
    if not _seats.acquire(timeout=PATIENCE):
        return _later(429, f"{MOST_AT_ONCE} deliveries are being taken now. Nothing of this was taken: send it again.")
    try:
        return _taken(request)
    finally:
        _seats.release()


def _taken(request: HttpRequest) -> JsonResponse:
    try:
        delivery = delivery_of(_body(request), cluster=settings.BEAMTIME_CLUSTER_NAME)
        strange = ingest.accept(
            cluster=settings.BEAMTIME_CLUSTER_NAME,
            delivery=delivery.records,
            read_ns=delivery.read_ns,
            sender=request.headers.get(_SENDER, "")[:64],
        )
    except Malformed as error:
        return _refusal(400, f"This is no OTLP logs request: {error}.")
    except Unavailable as error:
        return _later(429, str(error))
    except OperationalError:
        return _later(503, "The database does not answer. Nothing of this was taken.")
    except Exception:
        # A collector gives up what is answered with 500; nothing that it has read may be lost by a fault of ours.
        logger.exception("ingest: a delivery could not be kept")
        return _later(503, "The portal could not keep this. Nothing of it was taken.")
    rejected = delivery.strange + strange
    metrics.INGEST_RECORDS.labels("refused").inc(rejected)
    metrics.INGEST_RECORDS.labels("accepted").inc(sum(map(len, delivery.records.values())) - strange)
    if not rejected:
        return JsonResponse({"partialSuccess": {}})
    words = "These are no lines of containers of this portal's jobs in this cluster."
    return JsonResponse({"partialSuccess": {"rejectedLogRecords": str(rejected), "errorMessage": words}})


def _may(request: HttpRequest) -> bool:
    given = request.headers.get("Authorization", "")
    if given[: len(_SCHEME)].lower() != _SCHEME:
        return False
    token = given[len(_SCHEME) :].strip().encode("utf-8", "replace")
    # All are compared, so that the time says nothing of which.
    found = [hmac.compare_digest(token, known.encode()) for known in settings.BEAMTIME_INGEST_TOKENS]
    return any(found)


def _body(request: HttpRequest) -> Any:
    if int(request.headers.get("Content-Length") or 0) > MOST_BYTES:
        raise Malformed(f"it is larger than {MOST_BYTES:,} bytes; make the batches smaller")
    raw = request.read(MOST_BYTES + 1)
    encoding = request.headers.get("Content-Encoding", "")
    if encoding == "gzip":
        try:
            raw = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(MOST_UNPACKED + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise Malformed("it is no gzip") from error
    elif encoding:
        raise Malformed("the exporter's `compression` must be `gzip` or `none`")
    if len(raw) > MOST_UNPACKED:
        raise Malformed(f"it is larger than {MOST_UNPACKED:,} bytes unpacked; make the batches smaller")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Malformed("it is no JSON") from error


def _refusal(status: int, message: str) -> JsonResponse:
    return JsonResponse({"code": status, "message": message}, status=status)


def _later(status: int, message: str) -> JsonResponse:
    answer = _refusal(status, message)
    answer["Retry-After"] = _LATER
    return answer
