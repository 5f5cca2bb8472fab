"""Lists of jobs: what a person may see and asks for, page by page."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from portal.catalog.models import TemplateVersion
from portal.core.errors import Problem, Refused
from portal.jobs.models import Job, JobQuerySet, State
from portal.jobs.policy.names import LONGEST
from portal.teams.models import Team, User

PAGE_SIZE, LARGEST_PAGE = 50, 200
# A script may be large, and lists show none of it.
HEAVY = ("work", "values", "estimate", "node_selector")
# Adds what one kind of list shows beside the rows.
Shape = Callable[[JobQuerySet], QuerySet[Job]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Jobs, newest first. `older` and `newer` are cursors, None where the list ends."""

    jobs: Sequence[Job]
    older: str | None
    newer: str | None


def jobs_of(
    user: User,
    *,
    team: Team | None = None,
    states: Collection[str] = (),
    mine: bool = False,
    template: str = "",
    search: str = "",
) -> JobQuerySet:
    """The jobs that a person may see and asks for; `team` None means all teams.

    `template` is a slug. `search` is part of the job's or of the submitter's name, or the job's id. Raises `Refused` on
    "q" for a search longer than any name: SQLite gives up on long patterns.
    """
    if len(search) > LONGEST:
        message = f"It has {len(search):,} characters; a name has {LONGEST} at most. Search for less."
        raise Refused(Problem("q", message, "too_long"))
    jobs = Job.objects.visible_to(user, team=team)
    if states:
        jobs = jobs.filter(state__in=states)
    if mine:
        jobs = jobs.filter(submitted_by=user)
    if template:
        template = template.replace("\0", "")  # PostgreSQL takes none in a text
        jobs = jobs.filter(template_version__in=TemplateVersion.objects.filter(template__slug=template).values("pk"))
    if search:
        jobs = jobs.filter(_search(search.replace("\0", "")))
    return jobs


def _search(text: str) -> Q:
    found = Q(name__icontains=text) | Q(submitted_by_name__icontains=text)
    try:
        return found | Q(pk=UUID(text))
    except ValueError:
        return found


def page(jobs: JobQuerySet, *, cursor: str = "", limit: int = PAGE_SIZE, shape: Shape = lambda rows: rows) -> JobPage:
    """One page, by a cursor from an earlier one. One query, whatever the page and however long the list.

    `shape` adds annotations to the rows. Rows that come or go meanwhile neither repeat nor hide others. Raises
    `Refused` on "cursor".
    """
    limit = max(1, min(limit, LARGEST_PAGE))
    direction, moment, pk = _read_cursor(cursor)
    if direction == "n":
        # Written so that the index on time serves the range, and the second half only breaks ties.
        newer = jobs.filter(submitted_at__gte=moment).filter(Q(submitted_at__gt=moment) | Q(pk__gt=pk))
        found = _rows(newer, ("submitted_at", "pk"), limit + 1, shape)
        more, found = len(found) > limit, found[:limit][::-1]
        older = _cursor("o", found[-1]) if found else None
        return JobPage(jobs=found, newer=_cursor("n", found[0]) if more else None, older=older)
    if direction == "o":
        jobs = jobs.filter(submitted_at__lte=moment).filter(Q(submitted_at__lt=moment) | Q(pk__lt=pk))
    found = _rows(jobs, ("-submitted_at", "-pk"), limit + 1, shape)
    more, found = len(found) > limit, found[:limit]
    newest = _cursor("n", found[0]) if direction and found else None
    return JobPage(jobs=found, newer=newest, older=_cursor("o", found[-1]) if more else None)


def _rows(jobs: JobQuerySet, order: tuple[str, str], count: int, shape: Shape) -> list[Job]:
    """The first jobs in this order, with what a list shows of them.

    Which rows they are is found in the jobs alone: joined with teams and queues right away, SQLite may begin at those,
    and then reads and sorts every job of the team.
    """
    chosen = Job.objects.filter(pk__in=jobs.order_by(*order).values("pk")[:count])
    related = chosen.select_related("team", "template_version__template", "queue__cluster_queue")
    return list(shape(related.defer(*HEAVY, "template_version__definition")).order_by(*order))


def counts(jobs: JobQuerySet) -> dict[State, int]:
    """How many of these jobs are in each state, from the very rows of the list. One query."""
    # Rows, not keys: then the index on team and state answers alone, and no job is read.
    found = dict(jobs.order_by().values_list("state").annotate(number=Count("*")))
    return {state: found.get(state, 0) for state in State}


def _cursor(direction: str, job: Job) -> str:
    return f"{direction}{(job.submitted_at - _EPOCH) // _MICROSECOND:x}-{job.pk.hex}"


def _read_cursor(text: str) -> tuple[str, datetime, UUID]:
    if not text:
        return "", _EPOCH, UUID(int=0)
    direction, (moment, _dash, pk) = text[:1], text[1:].partition("-")
    try:
        if direction not in ("n", "o"):
            raise ValueError
        return direction, _EPOCH + int(moment, 16) * _MICROSECOND, UUID(hex=pk)
    except (ValueError, OverflowError) as error:
        raise Refused(Problem("cursor", "This cursor is not one of ours. Begin at the first page.")) from error
