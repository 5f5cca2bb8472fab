"""What one job costs."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import QuerySet

from portal.core.money import to_amount
from portal.costs.models import ChargeLine, Unpriced
from portal.costs.policy import NOT_GPU, rate, sku_of, total
from portal.costs.specs import CostLine, JobCost
from portal.funds.models import Price
from portal.funds.selectors import prices
from portal.jobs.models import Attempt, Job
from portal.usage.models import Interval
from portal.usage.selectors import intervals_of


def charges_of(job: Job) -> QuerySet[ChargeLine]:
    """A job's charge lines with their intervals, by start."""
    return ChargeLine.objects.filter(job=job).select_related("interval")


def job_cost(job: Job, at: datetime) -> JobCost:
    """What a job costs. Final once it is over, its pods have let go and all of it is charged. At most five queries."""
    held = list(intervals_of(job))
    uncounted = [interval for interval in held if interval.frozen_at is None]
    # Lines, and the lack of a price, come with the freezing of their interval; what is frozen only now counts as open.
    frozen = {interval.pk: interval for interval in held if interval.frozen_at is not None}
    lines: list[CostLine] = []
    missing: list[tuple[str, str]] = []
    if frozen:
        charged = ChargeLine.objects.filter(job=job)
        lines += [_charged(line, frozen[line.interval_id]) for line in charged if line.interval_id in frozen]
        unpriced = Unpriced.objects.filter(job=job).values_list("sku", "interval_id")
        missing += [(sku, frozen[key].resource) for sku, key in unpriced if key in frozen]
    if uncounted:
        known = list(prices())
        for interval in uncounted:
            found, lacks = _provisional(interval, known, at)
            lines += found
            missing += [(sku_of(interval), interval.resource)] if lacks else []
    is_final = job.is_over and not uncounted and (bool(lines or missing) or not _awaits_usage(job))
    names = _missing_names(missing, priced=bool(lines), gpus=any(line.resource not in NOT_GPU for line in lines))
    amount = None if names and not lines else to_amount(total(line.raw for line in lines))
    return JobCost(
        final=amount if is_final else None,
        so_far=None if is_final else amount,
        provisional=not is_final,
        currency=settings.BEAMTIME_CURRENCY,
        missing=names,
        free=bool(lines) and not names and all(line.price_per_hour == 0 for line in lines),
        lines=tuple(sorted(lines, key=lambda line: (line.started_at, line.pod_name, line.resource))),
    )


def _charged(line: ChargeLine, interval: Interval) -> CostLine:
    raw = line.exact
    return CostLine(
        pod_name=interval.pod_name,
        attempt_number=interval.attempt_number,
        resource=interval.resource,
        sku=sku_of(interval),
        units=line.units,
        started_at=line.started_at,
        ended_at=line.ended_at,
        seconds=line.seconds,
        price_per_hour=line.price_per_hour,
        raw=raw,
        amount=to_amount(raw),
        estimated=line.estimated,
    )


def _provisional(interval: Interval, known: Sequence[Price], at: datetime) -> tuple[list[CostLine], bool]:
    """(lines as they would be charged now, whether a part of it has no price)."""
    end = max(at.replace(microsecond=0), interval.started_at)
    rated = rate(interval, known, currency=settings.BEAMTIME_CURRENCY, end=end, zone=ZoneInfo(settings.TIME_ZONE))
    lines = [
        CostLine(
            pod_name=interval.pod_name,
            attempt_number=interval.attempt_number,
            resource=interval.resource,
            sku=sku_of(interval),
            units=piece.units,
            started_at=piece.started_at,
            ended_at=piece.ended_at,
            seconds=piece.seconds,
            price_per_hour=piece.price.amount,
            raw=piece.raw,
            amount=to_amount(piece.raw),
            estimated=interval.estimated,
            provisional=True,
        )
        for piece in rated.pieces
    ]
    return lines, rated.unpriced_seconds > 0


def _awaits_usage(job: Job) -> bool:
    """Whether an attempt had an object in the cluster of which not everything is stored yet."""
    return Attempt.objects.filter(job=job, stored_at__isnull=True).exclude(object_uid="").exists()


def _missing_names(lacking: Iterable[tuple[str, str]], *, priced: bool, gpus: bool) -> tuple[str, ...]:
    """What to name as having no price. Cores and memory count only where they have one, so only a job for which
    nothing has a price lacks one for "cpu": it must never read as free."""
    lacking = list(lacking)
    models = {sku for sku, resource in lacking if resource not in NOT_GPU}
    if models:
        return tuple(sorted(models))
    return ("cpu",) if lacking and not priced and not gpus else ()
