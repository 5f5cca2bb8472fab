"""What the list of jobs shows: filters from the address, a page by cursor, counts from the same rows, a line per job."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet
from django.http import QueryDict

from portal.jobs.models import Job, JobQuerySet, Pod, State
from portal.teams.models import Team, User

PAGE_SIZE = 50
LONGEST_SEARCH = 200
# The filters above the list; "other" takes what needs a look less often.
OTHER = (State.SUBMITTED, State.CANCELLING, State.REJECTED, State.LOST)
SHOWN = (State.QUEUED, State.STARTING, State.RUNNING, State.SUCCEEDED, State.FAILED, State.CANCELLED)
_CURSOR = re.compile(r"([0-9]{1,17})-([0-9a-f]{32})")
# What a row never shows: scripts, values, secrets' names. They would travel from the database by the megabyte.
_HEAVY = ("work", "values", "node_selector", "estimate")


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
class Page:
    """Rows, newest first. `newer` and `older` are cursors, "" where the list ends."""

    jobs: Sequence[Job]
    newer: str
    older: str


@dataclass(frozen=True, slots=True)
class Runs:
    """How far the runs of an array are."""

    done: int = 0
    failed: int = 0
    running: int = 0
    waiting: int = 0


def base(user: User, team: Team) -> JobQuerySet:
    """The team's jobs that the person may see."""
    return Job.objects.visible_to(user).filter(team=team)


def narrowed(jobs: JobQuerySet, filters: Filters, user: User, *, by_state: bool = True) -> JobQuerySet:
    """The jobs that the filters let through."""
    if filters.mine:
        jobs = jobs.filter(submitted_by=user)
    if filters.template:
        jobs = jobs.filter(template_version__template__slug=filters.template)
    if filters.q:
        jobs = jobs.filter(_search(filters.q))
    if by_state and filters.state:
        states = OTHER if filters.state == "other" else (filters.state,)
        jobs = jobs.filter(state__in=states)
    return jobs


def _search(text: str) -> Q:
    found = Q(name__icontains=text) | Q(submitted_by_name__icontains=text)
    try:
        return found | Q(pk=UUID(text))
    except ValueError:
        return found


def counts(jobs: QuerySet[Job]) -> dict[str, int]:
    """How many jobs each filter would show, from the very rows of the list. One query."""
    found = dict(jobs.order_by().values_list("state").annotate(n=Count("pk")))
    shown: dict[str, int] = {state: found.get(state, 0) for state in SHOWN}
    shown["other"] = sum(found.get(state, 0) for state in OTHER)
    shown["all"] = sum(found.values())
    return shown


def light(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """With what a row shows of the work, and without the work itself."""
    return (
        jobs.defer(*_HEAVY)
        .select_related("template_version__template", "queue__cluster_queue")
        .annotate(
            gpus=F("work__gpus"),
            runs=F("work__runs"),
            parallelism=F("work__parallelism"),
            limit_seconds=F("work__time_limit_seconds"),
        )
    )


def page(jobs: QuerySet[Job], query: Mapping[str, str]) -> Page:
    """One page by cursor: `before` goes to older jobs, `after` to newer ones. A cursor nobody gave is the first page.

    One query, whatever the page; rows that come or go meanwhile neither repeat nor hide others.
    """
    before, after = _read(query.get("before")), _read(query.get("after"))
    if after is not None:
        moment, pk = after
        newer = jobs.filter(submitted_at__gte=moment).filter(Q(submitted_at__gt=moment) | Q(pk__gt=pk))
        rows = list(light(newer).order_by("submitted_at", "pk")[: PAGE_SIZE + 1])
        more, rows = len(rows) > PAGE_SIZE, rows[:PAGE_SIZE][::-1]
        return Page(rows, _cursor(rows[0]) if more and rows else "", _cursor(rows[-1]) if rows else "")
    if before is not None:
        moment, pk = before
        jobs = jobs.filter(submitted_at__lte=moment).filter(Q(submitted_at__lt=moment) | Q(pk__lt=pk))
    rows = list(light(jobs).order_by("-submitted_at", "-pk")[: PAGE_SIZE + 1])
    more, rows = len(rows) > PAGE_SIZE, rows[:PAGE_SIZE]
    newer_cursor = _cursor(rows[0]) if before is not None and rows else ""
    return Page(rows, newer_cursor, _cursor(rows[-1]) if more else "")


def _cursor(job: Job) -> str:
    """Microseconds since the epoch, exact, and the id for jobs of the same moment."""
    since = job.submitted_at - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return f"{micros}-{job.pk.hex}"


def _read(text: str | None) -> tuple[datetime, UUID] | None:
    match = _CURSOR.fullmatch(text or "")
    if match is None:
        return None
    seconds, micros = divmod(int(match[1]), 1_000_000)
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros), UUID(match[2])
    except (ValueError, OverflowError, OSError):
        return None


def runs_of(jobs: Iterable[Job]) -> dict[UUID, Runs]:
    """How far the arrays among these jobs are, by the pods of their newest attempts. At most one query."""
    arrays = {job.pk: _runs(job) for job in jobs if _runs(job) > 1}
    if not arrays:
        return {}
    newest: dict[UUID, dict[int, str]] = {}
    number: dict[UUID, int] = {}
    pods = (
        Pod.objects.filter(attempt__job__in=arrays)
        .order_by("attempt__number", "pk")
        .values_list("attempt__job_id", "attempt__number", "index", "phase")
    )
    for job_id, attempt, index, phase in pods:
        if number.get(job_id) != attempt:
            number[job_id], newest[job_id] = attempt, {}
        # A later pod of the same index stands for it.
        newest[job_id][index] = phase
    return {job_id: _tally(newest.get(job_id, {}).values(), total) for job_id, total in arrays.items()}


def _runs(job: Job) -> int:
    return int(getattr(job, "runs", 1) or 1)


def _tally(phases: Iterable[str], total: int) -> Runs:
    seen = list(phases)
    done, failed, running = (sum(phase == name for phase in seen) for name in ("Succeeded", "Failed", "Running"))
    return Runs(done, failed, running, max(0, total - done - failed - running))
