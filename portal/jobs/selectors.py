"""Reads of jobs. What a person may not see is missing here; the doors need no check of their own."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from portal.catalog.models import TemplateVersion
from portal.catalog.policy import json_schema, parse_definition
from portal.catalog.specs import Offer
from portal.clusters.gateway import backend_of
from portal.core.errors import Missing, Problem, Refused
from portal.jobs.models import Attempt, Event, Job, JobQuerySet, Pod, State
from portal.jobs.policy.choice import offer_of
from portal.jobs.policy.specs_of import spec_of_job
from portal.jobs.policy.states import IN_CLUSTER
from portal.quotas.selectors import book_of
from portal.teams.models import Team, User

PAGE_SIZE, LARGEST_PAGE = 50, 200
# A script may be large, and lists show none of it.
HEAVY = ("work", "values", "estimate", "node_selector")
# Adds what one kind of list shows beside the rows.
Shape = Callable[[JobQuerySet], QuerySet[Job]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


# --- lists ----------------------------------------------------------------------------------------------------------


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
    search: str = "",
) -> JobQuerySet:
    """The jobs that a person may see and asks for; `team` None means all teams. `search` is part of the name."""
    jobs = Job.objects.visible_to(user)
    if team is not None:
        jobs = jobs.filter(team=team)
    if states:
        jobs = jobs.filter(state__in=states)
    if mine:
        jobs = jobs.filter(submitted_by=user)
    if search:
        jobs = jobs.filter(name__icontains=search.replace("\0", ""))
    return jobs


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
    found = dict(jobs.order_by().values_list("state").annotate(number=Count("pk")))
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


# --- one job --------------------------------------------------------------------------------------------------------


def job_for(user: User, job_id: UUID | str) -> Job:
    """A job with what its page names, in one query. An unknown, a foreign and a malformed id are all `Missing`."""
    found = None
    if isinstance(job_id, UUID) or _is_uuid(job_id):
        found = (
            Job.objects.visible_to(user)
            .select_related(
                "team", "template_version__template", "queue__cluster_queue__cluster", "rerun_of", "submitted_by"
            )
            .defer("rerun_of__work", "rerun_of__values", "rerun_of__estimate")
            .filter(pk=job_id)
            .first()
        )
    if found is None:
        raise Missing("There is no such job, or it is not open to you.")
    return found


def attempts_of(job: Job) -> list[Attempt]:
    """The tries at a job, the first one first, each with its pods. Two queries."""
    return list(job.attempts.prefetch_related("pods").order_by("number"))


def events_of(job: Job) -> list[Event]:
    """What happened to a job, oldest first. One query."""
    return list(job.events.all())


def manifests_of(job: Job, *, attempt: int = 1) -> list[dict[str, Any]]:
    """Exactly what is made in the cluster for an attempt; secrets by name only."""
    return backend_of(job.queue.cluster_queue.cluster).manifests(spec_of_job(job, attempt))


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    """What the filled form of a job begins with. `secrets` names what has to be entered again."""

    template: str
    version: int
    name: str
    queue: str
    values: dict[str, Any]
    secrets: tuple[str, ...]


def clone_values(job: Job) -> Clone:
    """The form as it was sent, without secrets, which are not kept."""
    return Clone(
        template=job.template_version.template.slug,
        version=job.template_version.number,
        name=job.name,
        queue=job.queue.cluster_queue.name,
        values=dict(job.values),
        secrets=tuple(job.work.get("secret_env", ())),
    )


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except (ValueError, AttributeError, TypeError):
        return False
    return True


# --- before a job ---------------------------------------------------------------------------------------------------


def offer_for(team: Team, *, queue: str = "") -> Offer:
    """What a team may choose in a form: the GPU flavors of one queue, or of all that are open to it. Two queries."""
    book = book_of(team)
    return offer_of(book, [found] if (found := book.queue(queue)) is not None else book.queues)


def values_schema(team: Team, version: TemplateVersion) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a version's values, with the flavors that are open to the team."""
    return json_schema(parse_definition(version.definition), offer_for(team))


# --- for the watcher ------------------------------------------------------------------------------------------------


def expected_objects(cluster: str) -> dict[str, tuple[str, int]]:
    """What should exist in a cluster: "namespace/name" -> (job id, attempt). One query over an index of its own."""
    rows = Attempt.objects.filter(
        # The second is implied by the first; the index is told by it.
        state__in=IN_CLUSTER,
        ended_at=None,
        withdrawn_at=None,
        job__queue__cluster_queue__cluster__name=cluster,
    ).exclude(object_uid="")
    found = rows.values_list("namespace", "object_name", "job_id", "number")
    return {f"{namespace}/{name}": (str(job_id), number) for namespace, name, job_id, number in found}


def living_pods(cluster: str) -> list[Pod]:
    """The pods, with their attempt, whose end nobody has seen, of attempts that are not over. One query."""
    alive = Pod.objects.filter(gone=False, attempt__ended_at=None).exclude(phase__in=("Succeeded", "Failed"))
    mine = alive.filter(attempt__job__queue__cluster_queue__cluster__name=cluster)
    return list(mine.select_related("attempt").order_by("pk"))


def places_of(attempts: Collection[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """Where attempts have their object: (job id, attempt) -> "namespace/name". One query."""
    rows = Attempt.objects.filter(job_id__in={job_id for job_id, _number in attempts})
    found = rows.values_list("job_id", "number", "namespace", "object_name")
    return {(str(job_id), number): f"{namespace}/{name}" for job_id, number, namespace, name in found}
