"""What the list of jobs reads: filters from the address, a page by cursor, counts from the same rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, F, QuerySet
from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from portal.core.errors import Refused
from portal.jobs import selectors as jobs_room
from portal.jobs.models import Job, JobQuerySet, Pod, State
from portal.jobs.selectors import HEAVY, JobPage
from portal.teams.models import Team, User

LONGEST_SEARCH = 200
# The filters above the list; "other" takes what needs a look less often.
OTHER = (State.SUBMITTED, State.CANCELLING, State.REJECTED, State.LOST)
SHOWN = (State.QUEUED, State.STARTING, State.RUNNING, State.SUCCEEDED, State.FAILED, State.CANCELLED)


@dataclass(frozen=True, slots=True)
class Filters:
    """What the address asks for. `state` is a state, "other" or "" for all."""

    state: str = ""
    mine: bool = False
    template: str = ""
    q: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> "Filters":
        """Unknown words count as not asked."""
        state = query.get("state", "")
        return cls(
            state=state if state == "other" or state in State.values else "",
            mine=query.get("mine") == "1",
            template=query.get("template", "")[:60],
            # PostgreSQL takes no NUL in a text; nobody types one.
            q=query.get("q", "").replace("\0", "").strip()[:LONGEST_SEARCH],
        )

    def address(self, **changes: Any) -> str:
        """The query string of these filters with some changed; "?" alone when nothing is asked."""
        asked = replace(self, **changes)
        pairs = {
            "state": asked.state,
            "mine": "1" if asked.mine else "",
            "template": asked.template,
            "q": asked.q,
        }
        return "?" + urlencode({name: value for name, value in pairs.items() if value})

    @property
    def any(self) -> bool:
        return bool(self.state or self.mine or self.template or self.q)


@dataclass(frozen=True, slots=True)
class Runs:
    """How far the runs of an array are."""

    done: int = 0
    failed: int = 0
    running: int = 0
    waiting: int = 0


def narrowed(user: User, team: Team, filters: Filters, *, by_state: bool = True) -> JobQuerySet:
    """The team's jobs that the person may see and the filters let through."""
    states: Sequence[str] = OTHER if filters.state == "other" else [filters.state]
    return jobs_room.jobs_of(
        user,
        team=team,
        states=states if by_state and filters.state else (),
        mine=filters.mine,
        template=filters.template,
        search=filters.q,
    )


def counts(jobs: JobQuerySet) -> dict[str, int]:
    """How many jobs each filter would show, from the very rows of the list. One query."""
    found = jobs_room.counts(jobs)
    shown = {str(state): found[state] for state in State}
    return shown | {"other": sum(found[state] for state in OTHER), "all": sum(found.values())}


def light(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """With the few numbers of the work that a line shows, and nothing of what the page knows, such as the team."""
    return (
        jobs.select_related(None)
        .defer(None)
        .defer(*HEAVY)
        .annotate(
            gpus=F("work__gpus"),
            runs=F("work__runs"),
            parallelism=F("work__parallelism"),
            limit_seconds=F("work__time_limit_seconds"),
        )
    )


def some(jobs: JobQuerySet) -> QuerySet[Job]:
    """Jobs of several teams: lines that name team and template."""
    return light(jobs).select_related("team", "template_version__template").defer("template_version__definition")


def page(jobs: JobQuerySet, cursor: str) -> JobPage:
    """One page; a cursor that is none of ours, as from an old bookmark, shows the first."""
    try:
        return jobs_room.page(jobs, cursor=cursor, shape=light)
    except Refused:
        return jobs_room.page(jobs, shape=light)


def mark_of(jobs: Sequence[Job]) -> str:
    """What a page remembers of its newest row: the moment of its submission, exact."""
    return jobs[0].submitted_at.isoformat() if jobs else ""


def arrived(jobs: JobQuerySet, mark: str) -> int:
    """How many of these jobs are newer than a page whose mark this is; of an empty page, all of them. One query."""
    if not mark:
        return jobs.count()
    try:
        moment = parse_datetime(mark)
    except ValueError:
        moment = None
    return jobs.filter(submitted_at__gt=moment).count() if moment is not None and moment.tzinfo is not None else 0


def runs_of(jobs: Iterable[Job]) -> dict[UUID, Runs]:
    """How far the arrays among these jobs are, by the pods of their newest attempts. At most one query."""
    totals = {job.pk: _runs(job) for job in jobs if _runs(job) > 1}
    if not totals:
        return {}
    seen: dict[UUID, dict[str, int]] = {}
    newest: dict[UUID, int] = {}
    # Counted where the rows are: an array may have ten thousand of them.
    phases = (
        Pod.objects.filter(attempt__job__in=totals)
        .values_list("attempt__job_id", "attempt__number", "phase")
        .annotate(number=Count("index", distinct=True))
        .order_by("attempt__number")
    )
    for job_id, attempt, phase, number in phases:
        if newest.get(job_id) != attempt:
            newest[job_id], seen[job_id] = attempt, {}
        seen[job_id][phase] = number
    return {job_id: _tally(seen.get(job_id, {}), total) for job_id, total in totals.items()}


def _runs(job: Job) -> int:
    return int(getattr(job, "runs", 1) or 1)


def _tally(phases: Mapping[str, int], total: int) -> Runs:
    done, running = phases.get("Succeeded", 0), phases.get("Running", 0)
    # A run that failed and was started again has a pod of both kinds; it counts as what it is now.
    failed = max(0, min(phases.get("Failed", 0), total - done - running))
    return Runs(done, failed, running, max(0, total - done - failed - running))
