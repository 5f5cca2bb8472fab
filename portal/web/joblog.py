"""The log on the job's page: which one, at which line, alone, beside others or merged with them; and its files."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from portal.core.errors import Corrupt, Unavailable
from portal.jobs.models import Job, State
from portal.logs import export
from portal.logs import merged as together
from portal.logs import selectors as logs
from portal.logs.models import Stream
from portal.logs.policy import display_text, gap_words
from portal.logs.search import opening_line
from portal.teams.policy import Action
from portal.web.access import Seat, of_job
from portal.web.jobruns import Runs

TAIL_LINES = 200
PAGE_LINES = 500
# Beside each other on a wide screen.
MOST_BESIDE = 4
_LINES_ABOVE = 60
VIEWS = ("one", "level", "side", "merged")
LEVELS: tuple[together.Level, ...] = ("all", "warning", "error")
# Colours of ranks; the seventh rank has the first one's again.
COLOURS = 6
# Of a container's name in a tag, if that much tells them apart.
_NAME = 12


def chosen(context: Mapping[str, Any], wanted: str | None) -> Stream | None:
    """The stream asked for; else that of the run that failed; else the newest that has said something.

    An unknown id is missing.
    """
    streams: list[Stream] = context["streams"]
    if wanted:
        return _named(streams, wanted)
    runs: Runs = context["runs"]
    if context["job"].state == State.FAILED and (failed := runs.failed_log) is not None:
        return failed
    spoken = [stream for stream in streams if stream.next_line > 1 or stream.open_text] or streams
    return spoken[-1] if spoken else None


def _named(streams: Sequence[Stream], wanted: str) -> Stream:
    for stream in streams:
        if str(stream.pk) == wanted:
            return stream
    raise Http404


def log_of(context: Mapping[str, Any], stream: Stream | None, first: int | None = None) -> dict[str, Any]:
    """The rows of a log as text, so that the page is whole without script.

    A failed job's log begins a little above its first error, every other one's ends with its last line.
    """
    if stream is None:
        return {"stream": None}
    failed: bool = context["job"].state == State.FAILED and first is None
    try:
        opening = opening_line(stream) if failed else None
        begin = first or max(1, stream.next_line - TAIL_LINES)
        if opening is not None:
            begin = max(1, min(begin, opening - _LINES_ABOVE))
        page = logs.lines(stream, begin, PAGE_LINES if first or opening else TAIL_LINES)
    except (Corrupt, Unavailable) as error:
        return {"stream": stream, "instead": str(error), "first": 1, "next": 1, "gaps_json": "[]"}
    gaps = logs.gaps_of(stream)
    return {
        "stream": stream,
        "instead": page.expired,
        "expiry": logs.expiry_words(stream) if not page.expired else "",
        "trouble": "" if page.expired else logs.trouble_of(stream),
        "gaps": gaps,
        "gaps_json": json.dumps([_gap(gap) for gap in gaps]),
        "rows": [_row(line.n, line.time_ns, line.text, gaps) for line in page.lines],
        "open_text": display_text(page.open_text),
        "opening": opening if opening is not None else first,
        "first": page.first if not page.expired else page.next,
        "next": page.next,
        "older": max(1, begin - PAGE_LINES) if begin > 1 else None,
        "newer": page.next if page.next < stream.next_line else None,
    }


def _row(n: int, time_ns: int, text: str, gaps: Sequence[Any]) -> tuple[int, int, str, list[str]]:
    before = [gap_words(gap) for gap in gaps if gap.before_line == n]
    return n, time_ns // 1_000_000, display_text(text), before


def _gap(gap: Any) -> dict[str, Any]:
    return {
        "before": gap.before_line,
        "after_ns": gap.after_ns,
        "until_ns": gap.until_ns,
        "words": gap_words(gap),
    }


def page_of(context: Mapping[str, Any], query: Any) -> dict[str, Any]:
    """What the page of the whole log shows: one (with `from`), its lines of a level, some beside each other, or all
    merged by time."""
    streams: list[Stream] = context["streams"]
    view = query.get("view", "one")
    if view not in VIEWS or (len(streams) < 2 and view != "level"):
        view = "one"
    if view == "side":
        wanted = [_named(streams, key) for key in dict.fromkeys(query.getlist("stream"))] or streams[-2:]
        beside = [
            log_of(context, stream) | {"prefix": f"p{place}-"} for place, stream in enumerate(wanted[:MOST_BESIDE])
        ]
        return {"view": view, "stream": wanted[0], "beside": beside}
    if view == "merged":
        return {"view": view} | _merged(streams, streams[-1], _level(query))
    stream = chosen(context, query.get("stream"))
    if view == "level" and stream is not None and stream.expired_at is None and _level(query) != "all":
        return {"view": view} | _merged([stream], stream, _level(query))
    text = query.get("from", "")
    first = max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) < 16 else None
    return {"view": "one"} | log_of(context, stream, first)


def _level(query: Any) -> together.Level:
    wanted = query.get("level", "all")
    return next((level for level in LEVELS if level == wanted), "all")


def _merged(streams: Sequence[Stream], stream: Stream, level: together.Level) -> dict[str, Any]:
    """These logs as one; `stream`: the one to go on with in other views."""
    ordered = together.in_order(streams)
    tags = _tags(ordered)
    named = [(one, tag, place % COLOURS) for place, (one, tag) in enumerate(zip(ordered, tags, strict=True))]
    found = {"stream": stream, "merged_streams": named, "level": level}
    try:
        page = together.merged(ordered, cursor=None, limit=TAIL_LINES, backward=True, level=level)
    except (Corrupt, Unavailable) as error:
        return found | {"instead": str(error), "merged": None}
    rows = [
        (named[line.stream], line.n, line.time_ns // 1_000_000, display_text(line.text), line.level, line.gaps)
        for line in page.lines
    ]
    missing = [(named[at], text) for at, text in page.missing]
    return found | {"merged": page, "merged_rows": rows, "merged_missing": missing}


def _tags(streams: Sequence[Stream]) -> list[str]:
    """The rank of each log, and as much more as is needed to tell them apart: attempt, container, which pod of that
    rank if the first one was replaced, restart. No two are alike."""
    attempts = len({stream.attempt_number for stream in streams}) > 1
    names = {stream.container for stream in streams}
    short = len({name[:_NAME] for name in names}) == len(names)
    pods: dict[tuple[int, int], list[str]] = {}
    for stream in streams:
        same = pods.setdefault((stream.pod_index, stream.attempt_number), [])
        same += [] if stream.pod_uid in same else [stream.pod_uid]
    tags = []
    for stream in streams:
        pod = pods[stream.pod_index, stream.attempt_number].index(stream.pod_uid) + 1
        tags.append(
            f"{stream.pod_index}"
            + (f" {stream.container[:_NAME] if short else stream.container}" if len(names) > 1 else "")
            + (f" try {stream.attempt_number}" if attempts else "")
            + (f" pod {pod}" if pod > 1 else "")
            + (f" restart {stream.restart}" if stream.restart else "")
        )
    return tags


def _attachment(portions: AsyncIterator[bytes], kind: str, name: str) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(portions, content_type=kind)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


@require_GET
@of_job(Action.SEE_JOB)
def job_download(request: HttpRequest, seat: Seat, job: Job, stream: UUID) -> HttpResponseBase:
    """The text byte for byte, as the container wrote it; with `form=gzip` compressed."""
    found = logs.streams_of(job).filter(pk=stream).first()
    if found is None:
        raise Http404
    if found.expired_at is not None:
        return HttpResponse(logs.expired_words(found), content_type="text/plain; charset=utf-8", status=410)
    try:
        text = logs.download(found)
    except (Corrupt, Unavailable) as error:
        status = 503 if isinstance(error, Unavailable) else 500
        return HttpResponse(str(error), content_type="text/plain; charset=utf-8", status=status)
    name = export.file_name(found)
    if request.GET.get("form") == "gzip":
        return _attachment(export.gzipped(text), "application/gzip", f"{name}.gz")
    answer = _attachment(text, "text/plain; charset=utf-8", name)
    for header, value in export.proof(found).items():
        answer[header] = value
    return answer


@require_GET
@of_job(Action.SEE_JOB)
def job_archive(request: HttpRequest, seat: Seat, job: Job) -> HttpResponseBase:
    """All logs of the job in one compressed archive."""
    streams = list(logs.streams_of(job))
    folder = f"{job.team.slug}-{str(job.pk)[:8]}-logs"
    return _attachment(export.gzipped(export.archive(streams, folder=folder)), "application/gzip", f"{folder}.tar.gz")
