"""The ClusterQueues: what each has, what Beamtime's jobs hold of it, who waits. Chosen by flavor."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.clusters.models import ResourceFlavor
from portal.core.clock import now
from portal.jobs.models import Attempt, Job
from portal.jobs.selectors import Want, admitted, held_by, limit_seconds, waiting
from portal.quotas.policy import Row
from portal.quotas.selectors import rows_now
from portal.teams.models import User
from portal.web.access import person, signed_in

# More waiting jobs than these are counted as "so many or more"; the list shows the first few.
MOST_WAITING, SHOWN = 2_000, 8
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A ClusterQueue in the table of one flavor. `parts` are the bar's, in percent of one scale for the whole page."""

    row: Row
    waiting: Decimal
    waiting_jobs: int
    parts: Sequence[dict[str, object]]
    granted: float

    @property
    def teams(self) -> str:
        return ", ".join(team.name for team in self.row.queue.teams.all())


@dataclass(frozen=True, slots=True)
class FlavorCard:
    """One card above the table: a flavor in short, and the way to its table."""

    flavor: ResourceFlavor
    label: str
    unit: str
    total: Decimal
    held: Decimal
    free: Decimal
    waiting: Decimal
    chosen: bool

    @property
    def memory_gib(self) -> int | None:
        return self.flavor.memory_beside


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job that runs or waits; without `job` it is another team's, of which only size and times are shown."""

    job: Job | None
    team: str
    queue: str
    units: Decimal
    since: datetime | None
    ends: datetime | None = None

    @property
    def seconds(self) -> int | None:
        return None if self.since is None else max(0, int((now() - self.since).total_seconds()))


@require_safe
@signed_in
def page(request: HttpRequest) -> HttpResponse:
    """Constant in queries: quotas, attempts that hold, attempts that wait, and whose names may be shown."""
    holding, asking = admitted(), waiting(MOST_WAITING)
    rows = rows_now(held_by(holding))
    # Flavors with GPUs first: they are what people come for.
    flavors = sorted({row.flavor.pk: row.flavor for row in rows}.values(), key=lambda f: (not f.gpu_resource, f.name))
    chosen = next((f for f in flavors if f.name == request.GET.get("flavor")), next(iter(flavors), None))
    context: dict[str, Any] = {"cluster": settings.BEAMTIME_CLUSTER_NAME, "now": now(), "chosen": chosen}
    if chosen is not None:
        context["memory_gib"] = chosen.memory_beside
        context |= _flavor_context(chosen, rows, holding, asking, person(request))
    context["cards"] = [_card(flavor, rows, asking, flavor is chosen) for flavor in flavors]
    context["queues"] = {row.queue.pk: row.queue for row in rows}.values()
    context["many"] = len(asking) >= MOST_WAITING
    return render(request, "web/queues/page.html", context)


def main_resource(flavor: ResourceFlavor) -> str:
    """What a flavor is looked at by: its GPUs, or cores where it has none."""
    return flavor.gpu_resource or "cpu"


def _flavor_context(
    flavor: ResourceFlavor,
    rows: Sequence[Row],
    holding: Sequence[Attempt],
    waiting: Sequence[Attempt],
    user: User,
) -> dict[str, Any]:
    of_flavor = [row for row in rows if row.flavor.pk == flavor.pk]
    main = [row for row in of_flavor if row.resource == main_resource(flavor)]
    prefetch_related_objects([row.queue for row in main], "teams")
    has = {row.queue.pk for row in main}
    asks = [(a, u) for a in waiting if (u := _asked(a, flavor, has)) > 0]
    runs = [(a, u) for a in holding if (u := _units(Want.of(a), flavor)) > 0 and _flavor(a) == flavor.name]
    visible = set(
        Job.objects.visible_to(user).filter(pk__in={a.job_id for a, _ in (*asks, *runs)}).values_list("pk", flat=True)
    )
    lines = _lines(main, asks)
    return {
        "lines": lines,
        "sums": _sums(lines),
        "others": [row for row in of_flavor if row.resource != main_resource(flavor)],
        "unit_is_gpu": bool(flavor.gpu_resource),
        "running": [_job_line(a, u, visible) for a, u in sorted(runs, key=lambda r: (-r[1], r[0].pk))][:SHOWN],
        "running_count": len(runs),
        "waiting": [_job_line(a, u, visible) for a, u in asks][:SHOWN],
        "waiting_count": len(asks),
        "scale": _scale(main),
    }


def _flavor(attempt: Attempt) -> str:
    return Want.of(attempt).flavor


def _units(want: Want, flavor: ResourceFlavor) -> Decimal:
    return Decimal(want.gpus) if flavor.gpu_resource else want.cores


def _asked(attempt: Attempt, flavor: ResourceFlavor, queues: set[int]) -> Decimal:
    """How much of a flavor a waiting attempt asks: of the one it named, or of any that its queue has."""
    want = Want.of(attempt)
    if want.queue_id not in queues or (want.flavor and want.flavor != flavor.name):
        return _ZERO
    return _units(want, flavor)


def _scale(rows: Iterable[Row]) -> Decimal:
    """Where the bars of the page end: the most that any of its queues has, may take, or holds."""
    return max((max(row.nominal, row.most, row.held) for row in rows), default=_ZERO)


def _lines(rows: Sequence[Row], asks: Sequence[tuple[Attempt, Decimal]]) -> list[QueueLine]:
    scale = _scale(rows)
    lines = []
    for row in rows:
        units = [u for a, u in asks if a.job.queue.cluster_queue_id == row.queue.pk]
        wanted = sum(units, _ZERO)
        # Dashes reach to the most that the queue may take; what waits beyond it stands in the column.
        dashes = min(wanted, max(_ZERO, max(row.most, row.nominal) - row.held))
        own, borrowed = min(row.held, row.nominal), row.borrowed
        parts = [
            _part("running", _ZERO, own, scale),
            _part("c2", own, borrowed, scale),
            _part("waiting", row.held, dashes, scale),
        ]
        shown = [part for part in parts if part["width"]]
        lines.append(QueueLine(row, wanted, len(units), shown, _percent(row.nominal, scale)))
    return lines


def _part(tone: str, start: Decimal, width: Decimal, scale: Decimal) -> dict[str, object]:
    return {"tone": tone, "x": _percent(start, scale), "width": _percent(width, scale)}


def _percent(value: Decimal, scale: Decimal) -> float:
    return float(value / scale * 100) if scale else 0.0


def _sums(lines: Sequence[QueueLine]) -> dict[str, Decimal | int]:
    return {
        "nominal": sum((line.row.nominal for line in lines), _ZERO),
        "held": sum((line.row.held for line in lines), _ZERO),
        "borrowed": sum((line.row.borrowed for line in lines), _ZERO),
        "waiting": sum((line.waiting for line in lines), _ZERO),
        "jobs": sum(line.waiting_jobs for line in lines),
    }


def _card(flavor: ResourceFlavor, rows: Sequence[Row], waiting: Sequence[Attempt], chosen: bool) -> FlavorCard:
    main = [row for row in rows if row.flavor.pk == flavor.pk and row.resource == main_resource(flavor)]
    total, held = sum((r.nominal for r in main), _ZERO), sum((r.held for r in main), _ZERO)
    wanted = sum((_asked(a, flavor, {r.queue.pk for r in main}) for a in waiting), _ZERO)
    unit = "gpu" if flavor.gpu_resource else "cpu"
    label = (flavor.gpu_model or flavor.name).removeprefix("NVIDIA ")
    return FlavorCard(flavor, label, unit, total, held, max(_ZERO, total - held), wanted, chosen)


def _job_line(attempt: Attempt, units: Decimal, visible: set[Any]) -> JobLine:
    job = attempt.job
    since = attempt.started_at or attempt.admitted_at or job.submitted_at
    limit = limit_seconds(attempt)
    ends = attempt.started_at + timedelta(seconds=limit) if limit and attempt.started_at else None
    shown = job if job.pk in visible else None
    return JobLine(shown, job.team_name, job.queue.cluster_queue.name, units, since, ends)


def queue_cards(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows put together by queue, for the small card beside other pages: GPUs, or what a queue without GPUs has."""
    cards: dict[int, dict[str, Any]] = {}
    for row in rows:
        cards.setdefault(row.queue.pk, {"queue": row.queue, "rows": []})["rows"].append(row)
    for card in cards.values():
        card["rows"] = [row for row in card["rows"] if row.is_gpu] or card["rows"]
    return list(cards.values())
