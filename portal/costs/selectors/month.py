"""What one team used in one month."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import NamedTuple, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from portal.core.money import EXACT, raw_cost, to_amount, whole_seconds
from portal.costs.models import ChargeLine, Unpriced
from portal.costs.policy import NOT_GPU, by_day, month_of, rate, shares, sku_of, total
from portal.costs.specs import DayShare, JobShare, Share, TeamMonth
from portal.funds.selectors import prices
from portal.jobs.models import Job
from portal.teams.models import Team
from portal.usage.models import Interval

K = TypeVar("K", bound=Hashable)
_DEAREST = 10
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some seconds of one hold, within the month."""

    job_id: UUID
    sku: str
    is_gpu: bool
    started_at: datetime
    ended_at: datetime
    units: Decimal
    price: Decimal
    provisional: bool

    def raw(self, seconds: int | None = None) -> Decimal:
        # Worked out anew and not read from the row: SQLite keeps only 15 digits of a decimal column.
        counted = self.seconds if seconds is None else seconds
        return raw_cost(seconds=counted, units=self.units, price_per_hour=self.price)

    def gpu_seconds(self, seconds: int | None = None) -> Decimal:
        return self.units * (self.seconds if seconds is None else seconds) if self.is_gpu else _ZERO

    @property
    def seconds(self) -> int:
        return whole_seconds(self.ended_at - self.started_at)


class _Sum(NamedTuple):
    raw: Decimal = _ZERO
    gpu_seconds: Decimal = _ZERO

    def plus(self, raw: Decimal, gpu_seconds: Decimal) -> "_Sum":
        return _Sum(EXACT.add(self.raw, raw), self.gpu_seconds + gpu_seconds)


class _Names(NamedTuple):
    name: str
    person: str
    template: str


def team_month(team: Team, month: date, at: datetime) -> TeamMonth:
    """What a team used in the month that holds this day, in the site's time zone, half-open. At most six queries.

    Rounded once, on the total; every breakdown adds up to it exactly.
    """
    zone = ZoneInfo(settings.TIME_ZONE)
    begin, end = month_of(month, zone)
    parts = _charged(team, begin, end)
    still, lacking = _uncounted(team, begin, end, at, zone)
    parts += still
    missing = tuple(sorted(lacking | _unpriced(team, begin, end)))
    amount = None if missing and not parts else to_amount(total(part.raw() for part in parts))
    shown = amount if amount is not None else _ZERO
    names = _names({part.job_id for part in parts})
    by_job = _sums((part.job_id, part.raw(), part.gpu_seconds()) for part in parts)
    amounts = dict(zip(by_job, shares([found.raw for found in by_job.values()], shown), strict=True))
    dearest = sorted(by_job, key=lambda job_id: by_job[job_id].raw, reverse=True)[:_DEAREST]
    return TeamMonth(
        month=month.replace(day=1),
        currency=settings.BEAMTIME_CURRENCY,
        total=amount,
        provisional=to_amount(total(part.raw() for part in parts if part.provisional)),
        gpu_seconds=sum((part.gpu_seconds() for part in parts), _ZERO),
        jobs_count=len(by_job),
        missing=missing,
        by_day=_days(parts, shown, zone),
        by_model=_shares(parts, shown, lambda part: part.sku),
        by_person=_shares(parts, shown, lambda part: names[part.job_id].person),
        by_template=_shares(parts, shown, lambda part: names[part.job_id].template),
        jobs=tuple(
            JobShare(
                key,
                names[key].name,
                names[key].person,
                amounts[key],
                by_job[key].gpu_seconds,
                under_a_cent=amounts[key] == 0 and by_job[key].raw > 0,
            )
            for key in dearest
        ),
    )


def _charged(team: Team, begin: datetime, end: datetime) -> list[_Part]:
    """The team's charge lines, clipped to the month.

    Lines end at the months' borders as they were when the line was made; they are clipped all the same, because the
    site's time zone may have changed since. None is longer than a month, which keeps the search within the index.
    """
    rows = ChargeLine.objects.filter(
        team=team, started_at__gte=begin - timedelta(days=32), started_at__lt=end, ended_at__gt=begin
    ).values_list(
        "job_id",
        "interval__resource",
        "interval__gpu_model",
        "started_at",
        "ended_at",
        "units",
        "price_per_hour",
    )
    parts = []
    for job_id, resource, gpu_model, started_at, ended_at, units, price in rows:
        is_gpu = resource not in NOT_GPU
        sku = (gpu_model or "GPU") if is_gpu else resource
        span = max(started_at, begin), min(ended_at, end)
        parts.append(_Part(job_id, sku, is_gpu, *span, units, price, provisional=False))
    return parts


def _uncounted(team: Team, begin: datetime, end: datetime, at: datetime, zone: tzinfo) -> tuple[list[_Part], set[str]]:
    """What still runs or is not charged yet, as it would be charged now; and what of it has no price."""
    intervals = list(
        Interval.objects.filter(
            Q(ended_at__isnull=True) | Q(ended_at__gt=begin), team=team, frozen_at__isnull=True, started_at__lt=end
        )
    )
    parts: list[_Part] = []
    lacking: dict[UUID, set[tuple[str, bool]]] = {}
    known = list(prices()) if intervals else []
    for interval in intervals:
        until = max(at.replace(microsecond=0), interval.started_at)
        rated = rate(interval, known, currency=settings.BEAMTIME_CURRENCY, end=until, zone=zone)
        is_gpu, sku = interval.resource not in NOT_GPU, sku_of(interval)
        if rated.unpriced_seconds:
            lacking.setdefault(interval.job_id, set()).add((sku, is_gpu))
        for piece in rated.pieces:
            span = max(piece.started_at, begin), min(piece.ended_at, end)
            if span[0] < span[1]:
                parts.append(
                    _Part(interval.job_id, sku, is_gpu, *span, piece.units, piece.price.amount, provisional=True)
                )
    names = {sku for found in lacking.values() for sku, is_gpu in found if is_gpu}
    with_gpus = {interval.job_id for interval in intervals if interval.resource not in NOT_GPU}
    priced = {part.job_id for part in parts}
    if any(job_id not in with_gpus | priced for job_id in lacking):
        names.add("cpu")
    return parts, names


def _unpriced(team: Team, begin: datetime, end: datetime) -> set[str]:
    """What of the month's closed intervals has no price: GPU models, and "cpu" for jobs of which nothing has one."""
    rows = Unpriced.objects.filter(team=team, interval__started_at__lt=end, interval__ended_at__gt=begin)
    names = set(rows.exclude(sku__in=NOT_GPU).values_list("sku", flat=True).distinct())
    charged = ChargeLine.objects.filter(job=OuterRef("job"))
    gpus = Interval.objects.filter(job=OuterRef("job")).exclude(resource__in=NOT_GPU)
    if rows.filter(sku__in=NOT_GPU).filter(~Exists(charged), ~Exists(gpus)).exists():
        names.add("cpu")
    return names


def _names(job_ids: Iterable[UUID]) -> dict[UUID, _Names]:
    rows = Job.objects.filter(pk__in=job_ids).values_list(
        "pk", "name", "submitted_by_name", "template_version__template__title"
    )
    return {key: _Names(name, person, template) for key, name, person, template in rows}


def _sums(rows: Iterable[tuple[K, Decimal, Decimal]]) -> dict[K, _Sum]:
    found: dict[K, _Sum] = {}
    for key, raw, gpu_seconds in rows:
        found[key] = found.get(key, _Sum()).plus(raw, gpu_seconds)
    return found


def _shares(parts: Sequence[_Part], amount: Decimal, label: Callable[[_Part], str]) -> tuple[Share, ...]:
    """The dearest first."""
    found = _sums((label(part), part.raw(), part.gpu_seconds()) for part in parts)
    amounts = shares([each.raw for each in found.values()], amount)
    rows = [Share(key, money, each.gpu_seconds) for (key, each), money in zip(found.items(), amounts, strict=True)]
    return tuple(sorted(rows, key=lambda row: (-row.amount, row.label)))


def _days(parts: Sequence[_Part], amount: Decimal, zone: tzinfo) -> tuple[DayShare, ...]:
    """The days on which anything was used, in order."""
    found = _sums(
        (day, part.raw(seconds), part.gpu_seconds(seconds))
        for part in parts
        for day, seconds in by_day(part.started_at, part.ended_at, zone)
    )
    amounts = shares([each.raw for each in found.values()], amount)
    rows = [DayShare(day, money, each.gpu_seconds) for (day, each), money in zip(found.items(), amounts, strict=True)]
    return tuple(sorted(rows, key=lambda row: row.day))
