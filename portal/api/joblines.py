"""`/jobs/<id>/lines/` and `/jobs/<id>/download/`: all logs of a job, merged by time or as one archive."""

from typing import Any, cast

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import View
from portal.api.parsing import choice, whole_number
from portal.api.streams import rfc3339
from portal.core.errors import Problem, Refused
from portal.jobs.models import Job
from portal.jobs.selectors import job_for
from portal.logs import export, merged
from portal.logs import selectors as logs
from portal.logs.models import Stream

_LEVELS = ("all", "warning", "error")


class MergedLineSerializer(serializers.Serializer[Any]):
    s = serializers.IntegerField(help_text="Which of `streams`, from 0.")
    n = serializers.IntegerField(help_text="Number of the line in its own stream.")
    t = serializers.CharField(help_text="When it was written, RFC 3339 with nanoseconds.")
    text = serializers.CharField()
    level = serializers.ChoiceField(["error", "warning", "info"], help_text="A guess by the words of the line.")
    gaps = serializers.ListField(
        child=serializers.CharField(), help_text="What is missing right before it in its own log."
    )


class MissingSerializer(serializers.Serializer[Any]):
    s = serializers.IntegerField(help_text="Which of `streams`, from 0.")
    words = serializers.CharField()


class MergedSerializer(serializers.Serializer[Any]):
    streams = serializers.ListField(child=serializers.UUIDField(), help_text="In the order in which they began.")
    lines = MergedLineSerializer(many=True)
    missing = MissingSerializer(many=True, help_text="At the end: what is missing behind the last line of a log.")
    before = serializers.CharField(help_text="Cursor of what was written before; with `direction=backward`.")
    after = serializers.CharField(help_text="Cursor of what follows.")
    at_start = serializers.BooleanField()
    at_end = serializers.BooleanField(help_text="Nothing more is stored at this moment.")
    complete = serializers.BooleanField(help_text="Nothing will ever follow.")


class JobLines(View):
    @extend_schema(
        parameters=[
            OpenApiParameter("cursor", str, description="`after`, or `before` going backward, of an earlier answer."),
            OpenApiParameter("direction", str, enum=["forward", "backward"]),
            OpenApiParameter("limit", int, description=f"Lines at most: 1 to {merged.MOST_LINES}, 500 if left out."),
            OpenApiParameter("level", str, enum=list(_LEVELS), description="Only lines that tell of this, or worse."),
            OpenApiParameter("streams", str, description="Ids of the streams wanted, with commas; all if left out."),
        ],
        responses=MergedSerializer,
    )
    def get(self, request: Request, job_id: str) -> Response:
        """Lines of all logs of a job in the order of time, each once. A cursor is good for the same `streams`."""
        streams = _streams(job_for(self.me(), job_id), request.query_params.get("streams"))
        page = merged.merged(
            streams,
            cursor=request.query_params.get("cursor") or None,
            limit=whole_number(request, "limit", default=500, least=1, most=merged.MOST_LINES),
            backward=choice(request, "direction", ("forward", "backward")) == "backward",
            level=cast(merged.Level, choice(request, "level", _LEVELS)),
        )
        lines = [
            {
                "s": line.stream,
                "n": line.n,
                "t": rfc3339(line.time_ns),
                "text": line.text,
                "level": line.level,
                "gaps": line.gaps,
            }
            for line in page.lines
        ]
        return Response(
            {
                "streams": [str(stream.pk) for stream in streams],
                "lines": lines,
                "missing": [{"s": at, "words": words} for at, words in page.missing],
                "before": page.before,
                "after": page.after,
                "at_start": page.at_start,
                "at_end": page.at_end,
                "complete": page.complete,
            }
        )


def _streams(job: Job, wanted: str | None) -> list[Stream]:
    """The streams asked for. Raises `Refused` for one that the job does not have, and for too many."""
    streams = merged.in_order(logs.streams_of(job))
    if wanted is not None:
        keys = set(wanted.split(",")) - {""}
        if unknown := keys - {str(stream.pk) for stream in streams}:
            name = sorted(unknown)[0][:40]
            raise Refused(Problem("streams", f"“{name}” is none of this job's streams.", "unknown"))
        streams = [stream for stream in streams if str(stream.pk) in keys]
    if len(streams) > merged.MOST_STREAMS:
        raise Refused(
            Problem("streams", f"At most {merged.MOST_STREAMS} can be merged, here are {len(streams)}.", "out_of_range")
        )
    return streams


class JobDownload(View):
    @extend_schema(responses={(200, "application/gzip"): OpenApiTypes.BINARY})
    def get(self, request: Request, job_id: str) -> StreamingHttpResponse:
        """All logs of a job in one compressed tar archive, with an index of lines, digests and gaps."""
        job = job_for(self.me(), job_id)
        folder = f"{job.team.slug}-{str(job.pk)[:8]}-logs"
        portions = export.gzipped(export.archive(list(logs.streams_of(job)), folder=folder))
        answer = StreamingHttpResponse(portions, content_type="application/gzip")
        answer["Content-Disposition"] = f'attachment; filename="{folder}.tar.gz"'
        answer["X-Content-Type-Options"] = "nosniff"
        return answer
