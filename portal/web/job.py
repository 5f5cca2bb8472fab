"""The job's page and its parts: overview, log, cost, events, manifest. What one can do to it stands in deeds.py."""

from collections.abc import Sequence
from typing import Any

import yaml
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from portal.core.clock import now
from portal.costs import selectors as costs
from portal.jobs import selectors as jobs
from portal.jobs.models import Job
from portal.logs import selectors as logs
from portal.logs.models import Stream
from portal.logs.policy import display_text
from portal.teams.policy import Action
from portal.usage.selectors import intervals_of
from portal.web.access import Seat, is_fragment, of_job
from portal.web.jobpage import JobPage

TAIL_LINES = 200
PAGE_LINES = 500


def _context(seat: Seat, job: Job, part: str) -> dict[str, Any]:
    attempts = jobs.attempts_of(job)
    streams = list(logs.streams_of(job))
    page = JobPage(job, attempts[-1] if attempts else None, now())
    return {
        "job": job,
        "page": page,
        "attempts": attempts,
        "streams": streams,
        "cost": costs.job_cost(job, page.moment),
        "tabs": _tabs(seat, job, part, streams),
        "may_cancel": not job.is_over and not job.cancel_requested_at and seat.may_cancel(job),
        "may_submit": seat.may(Action.SUBMIT_JOB),
    }


def _tabs(seat: Seat, job: Job, part: str, streams: Sequence[Stream]) -> list[dict[str, Any]]:
    lines = sum(stream.next_line - 1 for stream in streams)
    parts = [
        ("job", _("Overview"), None),
        ("job-log", _("Log"), lines or None),
        ("job-cost", _("Cost"), None),
        ("job-events", _("Events"), job.events.count()),
        ("job-manifest", _("Manifest"), None),
    ]
    where = [seat.team.slug, job.pk]
    return [
        {"label": label, "count": count, "href": reverse(f"web:{name}", args=where), "current": name == part}
        for name, label, count in parts
    ]


def _chosen(streams: Sequence[Stream], wanted: str | None) -> Stream | None:
    """The stream asked for; else the newest that has said something; else the newest. An unknown id is missing."""
    if wanted:
        for stream in streams:
            if str(stream.pk) == wanted:
                return stream
        raise Http404
    spoken = [stream for stream in streams if stream.next_line > 1 or stream.open_text] or list(streams)
    return spoken[-1] if spoken else None


def _log_context(stream: Stream | None, first: int | None = None) -> dict[str, Any]:
    """The rows of a log as text, so that the page is whole without script."""
    if stream is None:
        return {"stream": None}
    most = PAGE_LINES if first else TAIL_LINES
    begin = first or max(1, stream.next_line - most)
    page = logs.lines(stream, begin, most)
    return {
        "stream": stream,
        "rows": [(line.n, line.time_ns // 1_000_000, display_text(line.text)) for line in page.lines],
        "open_text": display_text(page.open_text),
        "first": page.first,
        "next": page.next,
        "older": max(1, begin - PAGE_LINES) if begin > 1 else None,
        "newer": page.next if page.next < stream.next_line else None,
    }


@require_GET
@of_job(Action.SEE_JOB)
def job(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """The overview; asked by htmx, only its living part."""
    context = _context(seat, job, "job")
    if is_fragment(request):
        return render(request, "web/job/_live.html", context)
    stream = _chosen(context["streams"], request.GET.get("stream"))
    return render(request, "web/job/overview.html", context | _log_context(stream))


@require_GET
@of_job(Action.SEE_JOB)
def job_log(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """The whole log, a page of lines at a time without script."""
    context = _context(seat, job, "job-log")
    text = request.GET.get("from", "")
    first = max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) < 16 else None
    stream = _chosen(context["streams"], request.GET.get("stream"))
    return render(request, "web/job/log.html", context | _log_context(stream, first))


@require_GET
@of_job(Action.SEE_JOB)
def job_download(request: HttpRequest, seat: Seat, job: Job, stream: Any) -> HttpResponseBase:
    """The text byte for byte, as the container wrote it."""
    found = logs.streams_of(job).filter(pk=stream).first()
    if found is None:
        raise Http404
    answer = StreamingHttpResponse(logs.content(found), content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{found.pod_name}-{found.container}.log"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


@require_GET
@of_job(Action.SEE_COSTS)
def job_cost(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """Estimate, so far, final; and every line that they are the sum of."""
    context = _context(seat, job, "job-cost")
    return render(request, "web/job/cost.html", context | {"intervals": list(intervals_of(job))})


@require_GET
@of_job(Action.SEE_JOB)
def job_events(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """What happened, by whose clock, in whose words."""
    context = _context(seat, job, "job-events")
    return render(request, "web/job/events.html", context | {"events": jobs.events_of(job)})


@require_GET
@of_job(Action.SEE_JOB)
def job_manifest(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """Exactly what was created; secrets by name only."""
    context = _context(seat, job, "job-manifest")
    manifests = jobs.manifests_of(job, attempt=len(context["attempts"]) or 1)
    text = yaml.safe_dump_all(manifests, sort_keys=False, allow_unicode=True, width=120)
    return render(request, "web/job/manifest.html", context | {"lines": text.splitlines()})
