"""What each of several jobs costs so far, for lists: the sums of `job_cost` in a fixed number of queries."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Sum

from portal.core.money import EXACT, raw_cost, to_amount
from portal.costs.models import ChargeLine, Unpriced
from portal.costs.policy import rate, total
from portal.funds.selectors import prices
from portal.usage.models import Interval


@dataclass(frozen=True, slots=True)
class ListedCost:
    """`amount` None: nothing that the job used has a price. `provisional`: a part still runs or is not charged yet.

    `under_a_cent`: it cost something, and less than can be shown.
    """

    amount: Decimal | None
    provisional: bool
    under_a_cent: bool = False


def costs_of(job_ids: Collection[UUID], at: datetime) -> dict[UUID, ListedCost]:
    """By job; one that has used nothing is left out. At most four queries, however many jobs and pods."""
    raws = _charged(job_ids)
    uncounted = list(Interval.objects.filter(job__in=job_ids, frozen_at__isnull=True))
    lacking = set(Unpriced.objects.filter(job__in=job_ids).values_list("job_id", flat=True))
    known = list(prices()) if uncounted else []
    provisional: set[UUID] = set()
    for interval in uncounted:
        provisional.add(interval.job_id)
        end = max(at.replace(microsecond=0), interval.started_at)
        rated = rate(interval, known, currency=settings.BEAMTIME_CURRENCY, end=end, zone=ZoneInfo(settings.TIME_ZONE))
        if rated.pieces:
            raw = total(piece.raw for piece in rated.pieces)
            raws[interval.job_id] = EXACT.add(raws.get(interval.job_id, Decimal(0)), raw)
        if rated.unpriced_seconds:
            lacking.add(interval.job_id)
    found = {key: _listed(raw, key in provisional) for key, raw in raws.items()}
    for key in (lacking | provisional) - set(found):
        # Held for less than a second costs nothing yet; without any price nothing is known.
        found[key] = ListedCost(None if key in lacking else Decimal("0.00"), key in provisional)
    return found


def _listed(raw: Decimal, provisional: bool) -> ListedCost:
    amount = to_amount(raw)
    return ListedCost(amount, provisional, under_a_cent=amount == 0 and raw > 0)


def _charged(job_ids: Collection[UUID]) -> dict[UUID, Decimal]:
    """The exact sums of the charge lines. Seconds are added up by the database, which does that exactly on both."""
    rows = (
        ChargeLine.objects.filter(job__in=job_ids)
        .order_by()
        .values_list("job_id", "units", "price_per_hour")
        .annotate(sum_of_seconds=Sum("seconds"))
    )
    raws: dict[UUID, Decimal] = {}
    for job_id, units, price, seconds in rows:
        raw = raw_cost(seconds=seconds, units=units, price_per_hour=price)
        raws[job_id] = EXACT.add(raws.get(job_id, Decimal(0)), raw)
    return raws
