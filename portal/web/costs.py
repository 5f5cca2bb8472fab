"""What a team spends in one month: the total, its days, and who and what it went to. All of it sums the same lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from portal.clusters.models import ResourceFlavor
from portal.core.clock import now
from portal.core.money import CENT
from portal.costs.selectors import team_month
from portal.costs.specs import Share, TeamMonth
from portal.teams.policy import Action
from portal.web.access import Seat, in_team

_MONTH = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])")
# Height of the plot in pixels, and the room above it for half a line of text.
PLOT, ABOVE, TICKS = 168, 8, 3
_MODEL_COLOURS = ("c1", "c2", "c3", "c4", "c5")


@dataclass(frozen=True, slots=True)
class Bar:
    """A day in the chart: place and width in percent, top and height in pixels."""

    day: date
    amount: Decimal
    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Line:
    """A horizontal line of the chart, in pixels; `text_y` is the foot of its label."""

    amount: Decimal
    y: float
    text_y: float


@dataclass(frozen=True, slots=True)
class Chart:
    """What is spent each day. `labels` are days with the middle of their place in percent."""

    bars: Sequence[Bar]
    lines: Sequence[Line]
    labels: Sequence[tuple[date, float]]
    # How the money filter writes the lines: without decimals where they say nothing.
    form: str


@dataclass(frozen=True, slots=True)
class Row:
    """A part of a breakdown, with its share of the month in percent."""

    label: str
    amount: Decimal
    percent: float
    gpu_hours: str
    tone: str = "accent"


@require_safe
@in_team(Action.SEE_COSTS)
def page(request: HttpRequest, seat: Seat) -> HttpResponse:
    """One month; the address says which, this one when it does not."""
    today = timezone.localdate()
    month = _asked(request.GET.get("month", ""), today)
    moment = now()
    found = team_month(seat.team, month, moment)
    context: dict[str, Any] = {
        "seat": seat,
        "team": seat.team,
        "month": found,
        "now": moment,
        "is_now": month == today.replace(day=1),
        "before": (month - timedelta(days=1)).replace(day=1),
        "after": _next(month) if month < today.replace(day=1) else None,
        "last": min(today, _next(month) - timedelta(days=1)),
        "gpu_hours": _hours(found.gpu_seconds),
        "chart": chart_of(found),
        "by_person": _rows(found.by_person, found.total),
        "by_template": _rows(found.by_template, found.total),
        "by_model": _coloured(_rows(found.by_model, found.total)),
        "jobs": [(job, _hours(job.gpu_seconds)) for job in found.jobs],
    }
    return render(request, "web/costs/page.html", context)


def _asked(text: str, today: date) -> date:
    """The first day of the month asked for; this month for what is none, or has not begun."""
    match = _MONTH.fullmatch(text)
    this = today.replace(day=1)
    return min(date(int(match[1]), int(match[2]), 1), this) if match else this


def _next(month: date) -> date:
    return (month + timedelta(days=31)).replace(day=1)


def _hours(seconds: Decimal) -> str:
    """ "2,064.4", "0.05": with as many decimals as say something; "" for none."""
    hours = seconds / 3600
    places = 1 if hours >= 10 else 2
    return number_format(hours, decimal_pos=places, force_grouping=True) if seconds else ""


def chart_of(month: TeamMonth) -> Chart | None:
    """A bar for each day on which something was used, on a scale with round lines; None when nothing was spent."""
    top = round_up(max((share.amount for share in month.by_day), default=Decimal(0)))
    if not top:
        return None
    days = (_next(month.month) - month.month).days
    slot = 100 / days
    bars = []
    for share in month.by_day:
        height = float(share.amount / top) * PLOT
        x = (share.day.day - 1) * slot + slot * 0.15
        bars.append(Bar(share.day, share.amount, x, slot * 0.7, ABOVE + PLOT - height, height))
    lines = []
    for step in range(TICKS + 1):
        y = ABOVE + PLOT - PLOT * step / TICKS
        lines.append(Line(top * step / TICKS, y, y + 4))
    shown = [1, *range(5, days + 1, 5)]
    labels = [(month.month.replace(day=day), (day - 0.5) * slot) for day in shown]
    return Chart(bars, lines, labels, "whole" if top >= 30 else "")


def round_up(amount: Decimal) -> Decimal:
    """The next amount that divides into three round parts, each a cent or more: 3, 6, 12, 15 or 30 times a power of
    ten."""
    if amount <= 0:
        return Decimal(0)
    amount = max(amount, 3 * CENT)
    power = Decimal(1).scaleb(amount.adjusted())
    return next(step * power for step in map(Decimal, ("1.2", "1.5", "3", "6", "12")) if amount <= step * power)


def _rows(shares: Sequence[Share], total: Decimal | None) -> list[Row]:
    return [
        Row(
            share.label,
            share.amount,
            float(share.amount / total * 100) if total else 0.0,
            _hours(share.gpu_seconds),
        )
        for share in shares
    ]


def _coloured(rows: Sequence[Row]) -> list[Row]:
    """A GPU model keeps its colour on all pages: by its place among the site's models."""
    models = list(dict.fromkeys(ResourceFlavor.objects.exclude(gpu_model="").values_list("gpu_model", flat=True)))
    tones = {model: _MODEL_COLOURS[min(place, len(_MODEL_COLOURS) - 1)] for place, model in enumerate(models)}
    words = {"cpu": _("Cores"), "memory": _("Memory")}
    return [replace(r, label=words.get(r.label, r.label), tone=tones.get(r.label, _MODEL_COLOURS[-1])) for r in rows]
