"""What was checked about a waiting job, in a fixed order so that two can be compared, and its place in the queue."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.jobs.models import Attempt
from portal.jobs.policy import Reason
from portal.jobs.selectors import Want
from portal.web import verdict
from portal.web.jobwaiting import Waiting
from portal.web.templatetags.beamtime import clock, number

# Places shown: the first, and those around the job.
_FIRST, _AROUND = 2, 2


@dataclass(frozen=True, slots=True)
class Check:
    """`mark`: passed, holds (what keeps it waiting) or open (not looked at yet)."""

    mark: str
    name: str
    finding: str
    source: str


@dataclass(frozen=True, slots=True)
class Place:
    """A waiting job of the same queue; of another team's only team and size. `gap` stands for so many left out."""

    number: int = 0
    name: str = ""
    line: str = ""
    size: str = ""
    href: str = ""
    own: bool = False
    gap: int = 0


def checks_of(waiting: Waiting) -> list[Check]:
    """What holds it back is the second row, behind whether it can ever fit."""
    fits, *others = [_fits(waiting), _room(waiting), _open(waiting), _turn(waiting), _held(waiting)]
    others.sort(key=lambda check: check.mark != "holds")
    image = Check("open", _("Image"), _("not reached: it is pulled once the job has a node"), "")
    return [fits, *others, image]


def _fits(waiting: Waiting) -> Check:
    name = _("Can ever fit")
    if waiting.main is None:
        return Check("open", name, _("the queue has no numbers yet"), _("quota"))
    row, asked = waiting.main
    never = waiting.code == Reason.NEVER_FITS or asked > row.most
    words = {"asked": verdict.plain_number(asked), "most": verdict.plain_number(row.most)}
    finding = _("asks %(asked)s, the most this queue can give is %(most)s") % words
    return Check("holds" if never else "passed", name, finding, _("quota"))


def _room(waiting: Waiting) -> Check:
    name = _("Room in the quota")
    if waiting.main is None or waiting.code in (Reason.NEVER_FITS, Reason.QUEUE_CLOSED, Reason.MISCONFIGURED):
        return Check("open", name, _("not reached"), "")
    row, asked = waiting.main
    short = waiting.short_by
    words = {
        "asked": verdict.plain_number(asked),
        "free": verdict.plain_number(asked - short if short else row.free),
        "flavor": row.flavor.name,
        "short": verdict.plain_number(short),
    }
    if short:
        finding = _("%(asked)s asked, %(free)s free in flavor %(flavor)s, %(short)s more needed") % words
        return Check("holds", name, finding, _("Workload"))
    return Check("passed", name, _("%(asked)s asked, %(free)s free in flavor %(flavor)s") % words, _("quota"))


def _open(waiting: Waiting) -> Check:
    name, queue = _("Queue is open"), waiting.page.job.queue
    words = {"local": queue.cluster_queue.name, "cluster": queue.cluster_queue.name}
    if waiting.code == Reason.MISCONFIGURED:
        return Check("holds", _("Set up rightly"), _("Kueue cannot admit it as it is; its words stand below"), "Kueue")
    if queue.cluster_queue.stopped or waiting.code == Reason.QUEUE_CLOSED:
        return Check("holds", name, _("ClusterQueue %(cluster)s takes no work now") % words, "Kueue")
    return Check("passed", name, _("LocalQueue %(local)s and ClusterQueue %(cluster)s take work") % words, "Kueue")


def _turn(waiting: Waiting) -> Check:
    """Only of jobs that wait for the same; that some came before is no fault, so it never holds a job that fits."""
    ahead = waiting.ahead
    text = ngettext("%(n)d job came before it", "%(n)d jobs came before it", ahead) % {"n": ahead}
    return Check("passed", _("Its turn"), text if ahead else _("first in line"), "Beamtime")


def _held(waiting: Waiting) -> Check:
    if waiting.code == Reason.HELD:
        return Check("holds", _("Held by nobody"), _("its Workload is deactivated"), "Kueue")
    return Check("passed", _("Held by nobody"), _("its Workload is active"), "Kueue")


def places_of(waiting: Waiting) -> list[Place]:
    """The line of jobs that wait for the same, around this one."""
    line, place = waiting.line, waiting.ahead
    wanted = sorted({*range(_FIRST), *range(place - _AROUND, place + _AROUND + 1)} & set(range(len(line))))
    found: list[Place] = []
    before = -1
    for at in wanted:
        if at > before + 1:
            found.append(Place(gap=at - before - 1))
        found.append(_place(waiting, line, at))
        before = at
    if before < len(line) - 1:
        found.append(Place(gap=len(line) - 1 - before))
    return found


def _place(waiting: Waiting, line: Sequence[Attempt], at: int) -> Place:
    attempt = line[at]
    job, want = attempt.job, Want.of(attempt)
    own = job.pk == waiting.page.job.pk
    seen = job.pk in waiting.visible
    since = format_html(_("since {time}"), time=clock(attempt.requeued_at or job.submitted_at))
    who = format_html(_("{name}, {since}"), name=job.submitted_by_name, since=since) if seen and not own else since
    name = _("This job") if own else job.name if seen else _("A job of %(team)s") % {"team": job.team_name}
    size = f"{number(want.gpus)} × {_gpu(waiting, want, job.gpu_model)}" if want.gpus else _cores(want)
    href = reverse("web:job", args=[job.team.slug, job.pk]) if seen and not own else ""
    return Place(at + 1, name, who, size, href, own=own)


def _gpu(waiting: Waiting, want: Want, model: str) -> str:
    """Without "(pretended)", which stands once in the head of the card."""
    flavor = next((row.flavor for row in waiting.rows if row.flavor.name == want.flavor), None)
    return (flavor.gpu_model if flavor is not None else model).removeprefix("NVIDIA ") or _("GPU")


def _cores(want: Want) -> str:
    cores = want.cores
    return ngettext("%(n)s core", "%(n)s cores", 1 if cores == 1 else 2) % {"n": verdict.plain_number(cores)}
