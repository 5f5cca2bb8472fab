"""The job's page and its parts: overview, log, cost, events, manifest. What one can do to it stands in deeds.py."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from portal.catalog.models import VersionState
from portal.catalog.selectors import newest_usable
from portal.clusters.models import ResourceFlavor
from portal.core.clock import now
from portal.core.money import EXACT, SECONDS_PER_HOUR, whole_seconds
from portal.costs import selectors as costs
from portal.funds.selectors import prices
from portal.jobs import selectors as jobs
from portal.jobs.models import Attempt, Event, Job, State
from portal.logs import selectors as logs
from portal.logs.models import Stream
from portal.teams.policy import Action
from portal.usage.selectors import intervals_of
from portal.web import joblog
from portal.web.access import Seat, is_fragment, of_job
from portal.web.jobhelps import helps_of
from portal.web.jobmoney import Money
from portal.web.jobpage import JobPage
from portal.web.jobplace import checks_of, places_of
from portal.web.jobruns import MOST_RUNS, Runs
from portal.web.jobwaiting import waiting_of
from portal.web.manifest import yaml_lines

PARTS = ("job", "job-log", "job-cost", "job-events", "job-manifest")


def _context(seat: Seat, job: Job, part: str) -> dict[str, Any]:
    attempts, events, streams = jobs.attempts_of(job), jobs.events_of(job), list(logs.streams_of(job))
    moment, attempt = now(), attempts[-1] if attempts else None
    cost = costs.job_cost(job, moment)
    page = JobPage(job, attempt, moment, events, _flavor(job, attempt), cost)
    newest = newest_usable(job.template_version.template)
    money = Money(job, cost, list(prices()), page.gpu)
    return {
        "job": job,
        "page": page,
        "answer": page.answer,
        "part": part,
        "attempts": attempts,
        "events": events,
        "streams": streams,
        "runs": Runs(job, attempts, streams, moment, page.work.runs),
        "money": money,
        "settled": money.settled(moment),
        "cost": cost,
        "tabs": _tabs(seat, job, part, streams, events),
        "newest": newest if newest and newest.number > job.template_version.number else None,
        "retired": job.template_version.state == VersionState.RETIRED,
        "may_cancel": not job.is_over and not job.cancel_requested_at and seat.may_cancel(job),
        "may_submit": seat.may(Action.SUBMIT_JOB),
    }


def _flavor(job: Job, attempt: Attempt | None) -> ResourceFlavor | None:
    """The flavor that it got, or else the one that it asked for."""
    name = (attempt.flavor if attempt else "") or job.work.get("flavor")
    if not name:
        return None
    return ResourceFlavor.objects.filter(cluster=job.queue.cluster_queue.cluster_id, name=name).first()


def _waiting(seat: Seat, context: dict[str, Any]) -> dict[str, Any]:
    """Why it waits; nothing for a job that does not."""
    page: JobPage = context["page"]
    if page.job.state != State.QUEUED:
        return {}
    waiting = waiting_of(page, seat.user, context["money"].prices, may_submit=context["may_submit"])
    return {
        "answer": waiting.answer,
        "waiting": waiting,
        "helps": helps_of(waiting),
        "checks": checks_of(waiting),
        "places": places_of(waiting),
    }


def _tabs(seat: Seat, job: Job, part: str, streams: Sequence[Stream], events: Sequence[Event]) -> list[dict[str, Any]]:
    lines = sum(stream.next_line - 1 for stream in streams)
    words = (_("Overview"), _("Log"), _("Cost"), _("Events"), _("Manifest"))
    counts = (None, lines or None, None, len(events), None)
    return [
        {
            "label": label,
            "count": count,
            "href": reverse(f"web:{name}", args=[seat.team.slug, job.pk]),
            "current": name == part,
        }
        for name, label, count in zip(PARTS, words, counts, strict=True)
    ]


@require_GET
@of_job(Action.SEE_JOB)
def job(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """The overview; asked by htmx, only the living parts of the page that `part` names."""
    part = request.GET.get("part", "job")
    context = _context(seat, job, part if part in PARTS else "job")
    context |= {"most_runs": None if request.GET.get("runs") == "all" else MOST_RUNS}
    if is_fragment(request):
        context["stream"] = joblog.chosen(context, request.GET.get("stream"))
        context["follows"] = "stream" in request.GET
        context["moved"] = request.GET.get("state", job.state) != job.state
        return render(request, "web/job/_live.html", context | _waiting(seat, context))
    log = joblog.log_of(context, joblog.chosen(context, request.GET.get("stream")))
    return render(request, "web/job/overview.html", context | _waiting(seat, context) | log)


@require_GET
@of_job(Action.SEE_JOB)
def job_log(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """The whole log, a page of lines at a time without script; or all logs of the job, merged or side by side."""
    context = _context(seat, job, "job-log")
    log = joblog.page_of(context, request.GET)
    return render(request, "web/job/log.html", context | log)


@require_GET
@of_job(Action.SEE_COSTS)
def job_cost(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """Estimate, so far, final; and every line that they are the sum of."""
    context = _context(seat, job, "job-cost")
    moment, cost = context["page"].moment, context["cost"]
    held = [(item, whole_seconds((item.ended_at or moment) - item.started_at)) for item in intervals_of(job)]
    ledger = [(line, EXACT.divide(line.raw, Decimal(SECONDS_PER_HOUR))) for line in cost.lines]
    return render(request, "web/job/cost.html", context | {"held": held, "ledger": ledger})


@require_GET
@of_job(Action.SEE_JOB)
def job_events(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """What happened, by whose clock, in whose words."""
    return render(request, "web/job/events.html", _context(seat, job, "job-events"))


@require_GET
@of_job(Action.SEE_JOB)
def job_manifest(request: HttpRequest, seat: Seat, job: Job) -> HttpResponse:
    """Exactly what was created; secrets by name only."""
    context = _context(seat, job, "job-manifest")
    manifests = jobs.manifests_of(job, attempt=len(context["attempts"]) or 1)
    return render(request, "web/job/manifest.html", context | {"lines": yaml_lines(manifests)})
