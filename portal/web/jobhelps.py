"""What would bring the start of a waiting job nearer: what happens by itself, and shapes that have room now."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.clusters.specs import WorkSpec
from portal.funds.policy import estimate
from portal.jobs.models import Attempt, State
from portal.jobs.policy import Reason
from portal.jobs.selectors import Want, limit_seconds
from portal.quotas.policy import Row, nearest
from portal.web import verdict
from portal.web.jobwaiting import Waiting
from portal.web.templatetags.beamtime import clock, money

_ZERO = Decimal(0)
# Holders named in what happens by itself.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Help:
    """Something that would bring the start nearer; with an `href` a button does it."""

    text: str
    line: str = ""
    action: str = ""
    href: str = ""


def helps_of(waiting: Waiting) -> list[Help]:
    """First what happens by itself, then shapes that would start now."""
    by_itself = _by_itself(waiting)
    return [*([by_itself] if by_itself else []), *_shapes(waiting)]


def _by_itself(waiting: Waiting) -> Help | None:
    if (
        not waiting.short_by
        or waiting.main is None
        or waiting.code in (Reason.NEVER_FITS, Reason.QUEUE_CLOSED, Reason.HELD)
    ):
        return None
    row, needed = waiting.main[0], waiting.short_by
    freed, taken = _ZERO, []
    for end, units, attempt in _ends(waiting, row):
        if freed < needed:
            taken.append((end, attempt))
            freed += units
    words = {"n": len(taken), "units": verdict.plain_number(freed), "what": verdict.what(row)}
    if freed < needed:
        return Help(_("It starts by itself once enough jobs have ended."), _("When that is, no time limit tells."))
    text = ngettext(
        "{n} job reaches its limit by {time} and frees {units} {what}.",
        "{n} jobs reach their limit by {time} and free {units} {what}.",
        len(taken),
    )
    if taken[-1][1].state == State.CANCELLING:
        text = ngettext(
            "{n} job is being stopped and frees {units} {what}.",
            "{n} jobs are being stopped and free {units} {what}.",
            len(taken),
        )
    at = clock(taken[-1][0])
    names = format_html_join(", ", "{} ({})", ((waiting.name_of(a), clock(end)) for end, a in taken[:_NAMED]))
    then = ngettext("%(n)d job came before it.", "%(n)d jobs came before it.", waiting.ahead) % {"n": waiting.ahead}
    line = format_html("{}. {}", names, then if waiting.ahead else _("Nothing to do."))
    return Help(format_html(text, time=at, **words), line)


def _ends(waiting: Waiting, row: Row) -> list[tuple[datetime, Decimal, Attempt]]:
    """When those that hold of a row let go at the latest, the soonest first; who has no limit is not among them."""
    found = []
    for attempt in waiting.holding:
        units, limit = _units(Want.of(attempt), row), limit_seconds(attempt)
        if units and attempt.state == State.CANCELLING:
            found.append((waiting.page.moment, units, attempt))
        elif units and limit and attempt.started_at:
            found.append((max(attempt.started_at + timedelta(seconds=limit), waiting.page.moment), units, attempt))
    return sorted(found, key=lambda end: (end[0], end[2].pk))


def _shapes(waiting: Waiting) -> list[Help]:
    """Other GPUs, or fewer: what of it has room at this moment, with nobody before it in line for the same."""
    work = waiting.page.work
    closed = waiting.code in (Reason.QUEUE_CLOSED, Reason.MISCONFIGURED, Reason.HELD)
    if not work.gpus or not waiting.may_submit or closed or not (waiting.short_by or waiting.code == Reason.NEVER_FITS):
        return []
    found = []
    pods = min(work.runs, work.parallelism or work.runs)
    mine = waiting.main[0].flavor.name if waiting.main else ""
    for row in sorted((r for r in waiting.rows if r.is_gpu), key=lambda r: r.flavor.name == mine):
        each = min(work.gpus, int(row.free) // pods)
        changed = replace(work, flavor=row.flavor.name, gpus=each)
        same = row.flavor.name == work.flavor and each == work.gpus
        if each and not same and nearest(changed, waiting.rows) == [] and not _wanted(waiting, row.flavor.name):
            found.append(_shape(waiting, changed, row))
    if (
        waiting.code == Reason.NEVER_FITS
        and not found
        and waiting.main
        and waiting.main[0].is_gpu
        and waiting.main[0].most
    ):
        row = waiting.main[0]
        most = replace(work, flavor=row.flavor.name, gpus=max(1, int(row.most) // pods))
        found.append(_shape(waiting, most, row, starts=False))
    return found[:3]


def _shape(waiting: Waiting, work: WorkSpec, row: Row, *, starts: bool = True) -> Help:
    shape = f"{work.gpus} × {row.flavor.short_label}"
    text = _("Take %(shape)s: it would start now.") if starts else _("Take %(shape)s: it would fit.")
    job = waiting.page.job
    form = reverse("web:submit-form", args=[job.team.slug, job.template_version.template.slug])
    query = urlencode({"from": job.pk, "shape": f"{row.flavor.name}*{work.gpus}"})
    return Help(text % {"shape": shape}, _price(waiting, work, row), _("Clone with it"), f"{form}?{query}")


def _price(waiting: Waiting, work: WorkSpec, row: Row) -> str:
    found = estimate(
        waiting.prices,
        gpus=work.gpus,
        gpu_models=[row.flavor.gpu_model],
        cores=Decimal(work.cpu_millicores) / 1000,
        gib=Decimal(work.memory_mib) / 1024,
        runs=work.runs,
        seconds=work.time_limit_seconds,
        at=waiting.page.moment,
        currency=waiting.currency,
    )
    stays = _("This one keeps its place until you cancel it.")
    if found.amount is not None:
        return f"{_('At most %(sum)s.') % {'sum': money(found.amount)}} {stays}"
    if found.per_hour is not None:
        return f"{_('%(sum)s per hour.') % {'sum': money(found.per_hour)}} {stays}"
    return stays


def _wanted(waiting: Waiting, flavor: str) -> bool:
    """Whether somebody waits for this flavor by name."""
    return any(Want.of(a).flavor == flavor for a in waiting.everybody if a.job_id != waiting.page.job.pk)


def _units(want: Want, row: Row) -> Decimal:
    """How much of a row's resource an admitted attempt holds."""
    if want.flavor != row.flavor.name:
        return _ZERO
    if row.is_gpu:
        return Decimal(want.gpus)
    return want.cores if row.resource == "cpu" else want.gib
