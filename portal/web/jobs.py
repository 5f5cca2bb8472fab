"""The list of a team's jobs, and the rows of it that the page asks for anew."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from portal.catalog.models import Template
from portal.jobs.models import State
from portal.jobs.selectors import PAGE_SIZE, jobs_of
from portal.teams.policy import Action
from portal.web import joblist
from portal.web.access import Seat, in_team
from portal.web.joblist import Filters
from portal.web.jobwords import rows_of


@require_safe
@in_team(Action.SEE_JOB)
def page(request: HttpRequest, seat: Seat) -> HttpResponse:
    """A page of the list; everything chosen is in the address."""
    filters = Filters.of(request.GET)
    found = joblist.page(joblist.narrowed(seat.user, seat.team, filters), request.GET.get("cursor", ""))
    counts = joblist.counts(joblist.narrowed(seat.user, seat.team, filters, by_state=False))
    here = filters.address()
    joint = "&" if len(here) > 1 else ""
    context: dict[str, Any] = {
        "seat": seat,
        "team": seat.team,
        "filters": filters,
        "states": state_filters(filters, counts),
        "rows": rows_of(found.jobs),
        "first_page": not found.newer,
        "newest": joblist.mark_of(found.jobs),
        "newer": f"{here}{joint}cursor={found.newer}" if found.newer else "",
        "older": f"{here}{joint}cursor={found.older}" if found.older else "",
        "total": counts[filters.state or "all"],
        "templates": list(Template.objects.values_list("slug", "title")),
        "mine_address": filters.address(mine=True),
        "team_address": filters.address(mine=False),
        "may_submit": seat.may(Action.SUBMIT_JOB),
    }
    if not found.jobs:
        context["empty"] = _empty(seat, filters, counts)
    return render(request, "web/jobs/page.html", context)


@require_safe
@in_team(Action.SEE_JOB)
def rows(request: HttpRequest, seat: Seat) -> HttpResponse:
    """Some rows of the list as they are now, the counts above it, and how many are newer; for static/js/jobs.js."""
    filters = Filters.of(request.GET)
    asked = _ids(request.GET.getlist("id"))
    found = joblist.light(jobs_of(seat.user, team=seat.team).filter(pk__in=asked)) if asked else []
    counts = joblist.counts(joblist.narrowed(seat.user, seat.team, filters, by_state=False))
    newer = joblist.narrowed(seat.user, seat.team, filters)
    context = {
        "team": seat.team,
        "rows": rows_of(list(found)),
        "states": state_filters(filters, counts),
        "arrived": joblist.arrived(newer, request.GET.get("newer", "")),
    }
    return render(request, "web/jobs/_rows.html", context)


@dataclass(frozen=True, slots=True)
class StateFilter:
    """A link above the list: a state, how many it would show, and whether it is chosen."""

    state: str
    label: str
    count: int
    href: str
    chosen: bool


def state_filters(filters: Filters, counts: dict[str, int]) -> list[StateFilter]:
    """All, the states people look for, and the rest of them together."""
    words = {"": _("All"), "other": _("Other")}
    names = ["", *joblist.SHOWN, "other"]
    if filters.state and filters.state not in names:
        names.append(filters.state)
    return [
        StateFilter(
            state=str(name),
            label=words.get(name) or str(State(name).label),
            count=counts[str(name) or "all"],
            href=filters.address(state=str(name)),
            chosen=filters.state == name,
        )
        for name in names
    ]


def _ids(texts: Sequence[str]) -> list[UUID]:
    found = []
    for text in texts[:PAGE_SIZE]:
        try:
            found.append(UUID(text))
        except ValueError:
            continue
    return found


def _empty(seat: Seat, filters: Filters, counts: dict[str, int]) -> dict[str, Any]:
    """What is not there, why, and what each loosened filter would find."""
    if not filters.any:
        return {"title": _("No jobs in this team yet"), "text": _("The first one will stand here."), "ways": []}
    ways = []
    if filters.state:
        ways.append((_any_state(counts["all"]), filters.address(state=""), counts["all"]))
    for name, words in (("q", _("Any name")), ("mine", _("Of everybody")), ("template", _("Any template"))):
        if getattr(filters, name):
            loose = Filters(**{**_as_dict(filters), name: False if name == "mine" else ""})
            found = joblist.narrowed(seat.user, seat.team, loose).count()
            ways.append((f"{words}, {_jobs(found)}", loose.address(), found))
    title = _("No job matches “%(q)s”") % {"q": filters.q} if filters.q else _("No job matches these filters")
    return {"title": title, "text": _("Loosen one of the filters:"), "ways": [way for way in ways if way[2]]}


def _as_dict(filters: Filters) -> dict[str, Any]:
    return {"state": filters.state, "mine": filters.mine, "template": filters.template, "q": filters.q}


def _any_state(count: int) -> str:
    return f"{_('Any state')}, {_jobs(count)}"


def _jobs(count: int) -> str:
    return ngettext("%(n)d job", "%(n)d jobs", count) % {"n": count}
