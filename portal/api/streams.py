"""`/streams/`: the logs of containers, by line number."""

from datetime import UTC, datetime
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import View
from portal.api.parsing import whole_number
from portal.api.serializers import LinesSerializer, StreamSerializer
from portal.core.errors import Gone
from portal.logs import export
from portal.logs import selectors as logs

_LAST = 10**15


def rfc3339(time_ns: int) -> str:
    """Nanoseconds since the epoch as RFC 3339 text, nothing rounded away."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


class OneStream(View):
    @extend_schema(responses=StreamSerializer)
    def get(self, request: Request, stream_id: str) -> Response:
        """How far a log has come."""
        return Response(StreamSerializer(logs.stream_for(self.me(), stream_id)).data)


class StreamLines(View):
    @extend_schema(
        parameters=[
            OpenApiParameter("from", int, description="First line wanted, from 1."),
            OpenApiParameter("limit", int, description=f"Lines at most: 1 to {logs.MOST_LINES}, 1000 if left out."),
        ],
        responses=LinesSerializer,
    )
    def get(self, request: Request, stream_id: str) -> Response:
        """Lines by number. Ask for `to` next; `complete` says that nothing will follow."""
        stream = logs.stream_for(self.me(), stream_id)
        first = whole_number(request, "from", default=1, least=1, most=_LAST)
        limit = whole_number(request, "limit", default=1000, least=1, most=logs.MOST_LINES)
        page = logs.lines(stream, first, limit)
        if page.expired:
            raise Gone(page.expired)
        body: dict[str, Any] = {
            "from": page.first,
            "to": page.next,
            "lines": [{"n": line.n, "t": rfc3339(line.time_ns), "text": line.text} for line in page.lines],
            "complete": page.complete,
        }
        return Response(body)


class StreamDownload(View):
    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.BINARY})
    def get(self, request: Request, stream_id: str) -> StreamingHttpResponse:
        """The text byte for byte, as the container wrote it.

        Of a complete log `Content-Length` says how long it is, and once it is sealed `Repr-Digest` (RFC 9530) its
        SHA-256, so that a client can prove what it got.
        """
        stream = logs.stream_for(self.me(), stream_id)
        if stream.expired_at is not None:
            raise Gone(logs.expired_words(stream))
        answer = StreamingHttpResponse(
            logs.download(stream), content_type="text/plain; charset=utf-8", headers=export.proof(stream)
        )
        answer["Content-Disposition"] = f'attachment; filename="{export.file_name(stream)}"'
        answer["X-Content-Type-Options"] = "nosniff"
        return answer
