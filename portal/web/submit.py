"""Submitting: the catalog, the form of one template, and what it would cost and create before the click."""

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cached_property, wraps
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.catalog import selectors as templates
from portal.catalog.models import TemplateVersion, VersionState
from portal.catalog.specs import Definition, Kind
from portal.core.clock import now
from portal.core.errors import Conflicting, Missing, Refused
from portal.funds.models import PricedResource
from portal.funds.policy import price_at
from portal.funds.selectors import prices
from portal.funds.specs import EstimateLine
from portal.jobs import services
from portal.jobs.models import Job
from portal.jobs.selectors import admitted, clone_values, held_by, job_for, waiting_jobs
from portal.jobs.specs import JobRequest, Preview
from portal.quotas.models import ClusterQueue
from portal.quotas.policy import Row, models_of
from portal.quotas.selectors import queues_open_to, rows_now
from portal.teams.policy import Action
from portal.web import verdict
from portal.web.access import Seat, View, in_team, is_fragment, keep_cookie
from portal.web.context import shell_of
from portal.web.manifest import yaml_lines
from portal.web.submitform import FROM, KEY, VERSION, Around, SubmitForm, new_key

SENT_COOKIE = "bt_sent"
_KEY = re.compile(r"[0-9a-f]{32}")


@require_safe
@in_team(Action.SEE_TEAM)
def catalog(request: HttpRequest, seat: Seat) -> HttpResponse:
    """Every template that can be submitted, each with its newest version."""
    versions, may = list(templates.offered()), seat.may(Action.SUBMIT_JOB)
    context = {"seat": seat, "team": seat.team, "versions": versions, "may": may}
    return render(request, "web/submit/catalog.html", context)


def _of_template(view: Callable[[HttpRequest, "_Page"], HttpResponse]) -> View:
    """The view gets the page of the template in the address; one that cannot be used says why and what can."""

    @in_team(Action.SUBMIT_JOB)
    @wraps(view)
    def guarded(request: HttpRequest, seat: Seat, template: str) -> HttpResponse:
        try:
            page = _Page.load(request, seat, template)
        except Refused as refused:
            context = {"seat": seat, "team": seat.team, "why": refused.problems[0].message}
            return render(request, "web/submit/unavailable.html", context, status=404)
        return view(request, page)

    return guarded


@require_http_methods(["GET", "HEAD", "POST"])
@_of_template
def form(request: HttpRequest, page: "_Page") -> HttpResponse:
    """The form, and its sending. What is wrong comes back at its field, with all that was typed but secrets."""
    if request.method != "POST":
        return page.render()
    try:
        submitted = services.submit(page.job_request())
    except Refused as refused:
        page.form.refuse(refused)
        return page.render(status=422)
    except Conflicting:
        # The same form was sent before with other values, as after Back: it is a new wish, under a new key.
        page.form.key = new_key()
        page.notice = _("This form was sent already and has become a job. Send it again to make another one.")
        return page.render(status=409)
    if submitted.created:
        messages.success(request, _("“%(name)s” is sent.") % {"name": submitted.job.name})
    response = redirect("web:job", page.seat.team.slug, submitted.job.pk)
    return _remember_sent(request, response, page.form.key)


@require_POST
@_of_template
def estimate(request: HttpRequest, page: "_Page") -> HttpResponse:
    """The right column, worked out for the form as it stands. Says nothing about fields; those wait for the click."""
    return render(request, "web/submit/_estimate.html", page.estimate() | {"swap": True})


@require_POST
@_of_template
def preview(request: HttpRequest, page: "_Page") -> HttpResponse:
    """Exactly what would be created, as YAML: a fragment for the drawer, or the page with it below the form."""
    try:
        found = services.preview(page.job_request())
    except Refused as refused:
        page.form.refuse(refused)
        if is_fragment(request):
            return render(request, "web/submit/_yaml.html", {"form": page.form})
        return page.render(status=422)
    context = {"yaml": yaml_lines(found.manifests), "preview": found, "version": page.version}
    if is_fragment(request):
        return render(request, "web/submit/_yaml.html", context)
    return page.render(context)


def _remember_sent(request: HttpRequest, response: HttpResponse, key: str) -> HttpResponse:
    """Name the last few forms that became jobs, so that submit.js drops their drafts and no others."""
    before = [kept for kept in request.COOKIES.get(SENT_COOKIE, "").split(".") if kept.isalnum() and kept != key]
    keep_cookie(response, SENT_COOKIE, ".".join([key, *before][:8]))
    return response


class _Page:
    """One template's form in front of one person, with what stands around it."""

    def __init__(
        self, request: HttpRequest, seat: Seat, version: TemplateVersion, source: Job | None, *, newest: bool
    ) -> None:
        """`newest`: the version is the one that the catalog offers, and so no other need be looked for."""
        self.request, self.seat, self.version, self.source, self._newest = request, seat, version, source, newest
        self.notice = ""
        self.form = self._form()

    @classmethod
    def load(cls, request: HttpRequest, seat: Seat, template: str) -> "_Page":
        """Raises `Refused` for a template or version that cannot be used; its message says what can."""
        sent = request.POST.get(VERSION) or request.GET.get("version") or ""
        # Digits of other scripts count as digits too for Python; here a number is 0 to 9.
        number = int(sent) if sent.isascii() and sent.isdecimal() and len(sent) < 10 else None
        version = templates.version_for(template, number if number is not None or not sent else 0)
        source = _source(seat, request.POST.get(FROM) or request.GET.get("from"))
        return cls(request, seat, version, source, newest=not sent)

    @cached_property
    def queues(self) -> list[ClusterQueue]:
        return list(queues_open_to(self.seat.team))

    @cached_property
    def rows(self) -> list[Row]:
        """What there is and what is held, in the team's queues."""
        ids = {queue.pk for queue in self.queues}
        rows = rows_now(held_by(admitted()))
        return [row for row in rows if row.queue.pk in ids]

    @cached_property
    def _around(self) -> Around:
        at, found = now(), list(prices())
        gpus = [row for row in self.rows if row.is_gpu]
        priced = {
            model: price_at(found, resource="gpu", gpu_model=model, at=at)
            for model in {row.flavor.gpu_model for row in gpus}
        }
        return Around(
            queues=[queue.name for queue in self.queues],
            rooms=models_of(gpus),
            prices={model: price.amount if price else None for model, price in priced.items()},
        )

    def _form(self) -> SubmitForm:
        cloned = clone_values(self.source) if self.source else None
        definition = templates.definition_of(self.version)
        form = SubmitForm(
            definition=definition,
            title=self.version.template.title,
            around=lambda: self._around,
            data=self.request.POST if self.request.method == "POST" else None,
            values=_reshaped(definition, cloned.values, self.request.GET.get("shape", "")) if cloned else None,
            name=cloned.name if cloned else "",
            queue=cloned.queue if cloned else "",
        )
        # Ours are 32 hexadecimal digits; what is none of ours is not kept.
        if _KEY.fullmatch(self.request.POST.get(KEY, "")):
            form.key = self.request.POST[KEY]
        return form

    def job_request(self) -> JobRequest:
        """The form as the house takes it."""
        return JobRequest(
            team=self.seat.team,
            user=self.seat.user,
            template=self.version.template.slug,
            version=self.version.number,
            values=self.form.sent_values(),
            name=self.form.sent_name(),
            queue=self.form.sent_queue(),
            idempotency_key=self.form.key or None,
        )

    def _untouched_request(self) -> JobRequest:
        """For the estimate of a form that nobody has sent: what its fields show."""
        return JobRequest(
            team=self.seat.team,
            user=self.seat.user,
            template=self.version.template.slug,
            version=self.version.number,
            values=self.form.shown_values(),
            name=self.form.name,
            queue=self.form.queue or None,
        )

    def estimate(self) -> dict[str, Any]:
        """Verdict and cost for the form as it stands."""
        asked = self.job_request() if self.request.method == "POST" else self._untouched_request()
        try:
            # A name that cannot be changes neither cost nor verdict; it is refused at its field when the form is sent.
            found = services.preview(replace(asked, name=""))
        except Refused as refused:
            return {"verdict": verdict.refused(refused.problems, self.form.label_of), "estimate": None}
        in_queue = [row for row in self.rows if row.queue.name == found.queue]
        ahead = waiting_jobs(in_queue[0].queue) if in_queue else 0
        said = verdict.of_work(found.spec.work, found.queue, in_queue, ahead)
        lines = [(_line_words(line), line.price_per_hour) for line in found.estimate.lines]
        span = self._span(asked, found, in_queue)
        return {"verdict": said, "estimate": found.estimate, "span": span, "lines": lines, "work": found.spec.work}

    def _span(self, asked: JobRequest, found: Preview, rows: list[Row]) -> tuple[Decimal, Decimal] | None:
        """Least and most that it can cost at its limit while Kueue may pick among several GPU models, as priced."""
        work, gpu = found.spec.work, self.form.definition.gpu
        models = [row.flavor.name for row in rows if row.is_gpu]
        if not work.gpus or work.flavor or gpu is None or len(models) < 2:
            return None
        amounts = []
        for model in models:
            values = {**asked.values, gpu.name: {"flavor": model, "count": work.gpus}}
            try:
                one = services.preview(replace(asked, name="", queue=found.queue, values=values))
            except Refused:
                continue
            if one.estimate.amount is not None:
                amounts.append(one.estimate.amount)
        return (min(amounts), max(amounts)) if amounts else None

    def render(self, extra: dict[str, Any] | None = None, status: int = 200) -> HttpResponse:
        """The form and its frame, which show the same rooms."""
        shell_of(self.request).free = self._around.rooms
        context = {
            "seat": self.seat,
            "team": self.seat.team,
            "version": self.version,
            "template": self.version.template,
            "deprecated": self.version.state == VersionState.DEPRECATED,
            "newest": self.version if self._newest else templates.newest_usable(self.version.template),
            "source": self.source,
            "form": self.form,
            "notice": self.notice,
            **self.estimate(),
            **(extra or {}),
        }
        return render(self.request, "web/submit/form.html", context, status=status)


def _line_words(line: EstimateLine) -> str:
    """ "4 × NVIDIA H100", "8 cores", "64 GiB of memory"."""
    units = f"{line.units.normalize():,f}"
    if line.resource == PricedResource.GPU:
        return f"{units} × {line.sku}"
    if line.resource == PricedResource.CPU:
        return ngettext("%(n)s core", "%(n)s cores", int(line.units)) % {"n": units}
    return _("%(n)s GiB of memory") % {"n": units}


def _reshaped(definition: Definition, values: dict[str, Any], shape: str) -> dict[str, Any]:
    """A cloned job's values with other GPUs, `flavor*count`, as its waiting page offers; else as they are."""
    flavor, star, count = shape.rpartition("*")
    gpu = next((p for p in definition.parameters if p.kind is Kind.GPU), None)
    if gpu is None or not star or not (count.isascii() and count.isdecimal() and len(count) < 4):
        return values
    return {**values, gpu.name: {"flavor": flavor, "count": int(count)}}


def _source(seat: Seat, text: str | None) -> Job | None:
    """The job whose values fill the form, if it is one of this team's; anything else is as if nothing was asked."""
    try:
        found = job_for(seat.user, text or "")
    except Missing:
        return None
    return found if found.team_id == seat.team.pk else None
