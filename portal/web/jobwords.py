"""A job as one line: how long it waited and ran, what it asks, and its reason or progress in a few words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateformat import format as format_date
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from portal.core.clock import now
from portal.core.money import whole_seconds
from portal.costs.selectors import ListedCost, costs_of
from portal.jobs.models import Job, State
from portal.web.joblist import Runs, runs_of

# States in which somebody should look: their few words are coloured.
_ACT = {State.FAILED: "bt-is-bad", State.REJECTED: "bt-is-bad", State.LOST: "bt-is-lost"}
_WAITS = frozenset({State.SUBMITTED, State.QUEUED})


@dataclass(frozen=True, slots=True)
class JobRow:
    """A line of a list. Seconds are None where there is nothing to count."""

    job: Job
    words: str
    colour: str
    shape: str
    waited_seconds: int | None
    ran_seconds: int | None
    # None: it has used nothing yet.
    cost: ListedCost | None = None


def rows_of(jobs: Sequence[Job]) -> list[JobRow]:
    """The lines of these jobs, which come from `joblist.light`. At most five queries for all of them."""
    moment, runs = now(), runs_of(jobs)
    costs = costs_of([job.pk for job in jobs], moment) if jobs else {}
    return [row_of(job, moment, runs.get(job.pk), costs.get(job.pk)) for job in jobs]


def row_of(job: Job, moment: datetime, runs: Runs | None, cost: ListedCost | None) -> JobRow:
    until = job.started_at or job.ended_at or moment
    waited = whole_seconds(until - job.submitted_at)
    ran = whole_seconds((job.ended_at or moment) - job.started_at) if job.started_at else None
    return JobRow(
        job=job,
        words=_words(job, moment, runs),
        colour=_ACT.get(State(job.state), ""),
        shape=shape(job),
        waited_seconds=waited,
        ran_seconds=ran,
        cost=cost,
    )


def shape(job: Job) -> str:
    """ "8 × H100", or "" for a job without GPUs."""
    each, runs = int(getattr(job, "gpus", 0) or 0), int(getattr(job, "runs", 1) or 1)
    at_once = min(runs, int(getattr(job, "parallelism", None) or runs))
    if not each:
        return ""
    model = job.gpu_model.removeprefix("NVIDIA ") or _("GPU")
    return f"{number_format(each * at_once)} × {model}"


def _words(job: Job, moment: datetime, runs: Runs | None) -> str:
    if runs is not None and not job.is_over and job.state not in _WAITS:
        return _runs_words(job, runs)
    if job.state == State.SUCCEEDED:
        return ""
    if job.reason:
        return clause(job.reason)
    if job.state == State.SUBMITTED:
        return _("on its way to the cluster")
    if job.state == State.CANCELLING:
        return _("waits for its pod to end")
    if job.state == State.CANCELLED and job.cancel_requested_by_name:
        return _("by %(name)s") % {"name": job.cancel_requested_by_name}
    if job.state == State.RUNNING:
        return _limit_words(job, moment)
    return ""


def _limit_words(job: Job, moment: datetime) -> str:
    seconds = getattr(job, "limit_seconds", None)
    if not seconds or job.started_at is None:
        return ""
    ends = timezone.localtime(job.started_at + timedelta(seconds=int(seconds)))
    at = format_date(ends, "H:i" if ends.date() == timezone.localtime(moment).date() else "j M, H:i")
    return _("ends by %(time)s at its limit") % {"time": at}


def _runs_words(job: Job, runs: Runs) -> str:
    parts = [
        (runs.done, _("done")),
        (runs.failed, _("failed")),
        (runs.running, _("running")),
        (runs.waiting, _("waiting")),
    ]
    counted = ", ".join(f"{number_format(count)} {word}" for count, word in parts if count)
    return _("%(total)s runs: %(counted)s") % {"total": number_format(sum(p[0] for p in parts)), "counted": counted}


def clause(reason: str) -> str:
    """The first sentence of a reason, without its full stop: what fits beside a name."""
    first = reason.strip().partition("\n")[0].partition(". ")[0]
    return first.rstrip(".")
