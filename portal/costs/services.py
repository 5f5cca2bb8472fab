"""The verb of costs: rating. Charges are only ever added; the database refuses to change or delete one."""

import logging
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction

from portal.core import bus
from portal.costs.models import ChargeLine, Unpriced
from portal.costs.policy import Piece, Rated, charge_id, prices_of, sku_of
from portal.costs.policy import rate as rate_one
from portal.funds.models import Price
from portal.funds.selectors import prices
from portal.usage import selectors as usage
from portal.usage import services as usage_services
from portal.usage.models import Interval

logger = logging.getLogger(__name__)

BATCH = 200
# A batch that somebody else took meanwhile is left to them, this often in a row.
_PATIENCE = 20


class _Beaten(Exception):
    """Another worker counts with these intervals already."""


def rate() -> int:
    """Charge every closed interval that has not been charged; the number of lines written.

    An interval without a price gets no line; it stays visible as unpriced and is looked at again when a price for it
    has been entered. Several workers at once write each line once.
    """
    written = beaten = 0
    while beaten < _PATIENCE:
        try:
            lines, done = _rate_batch()
        except _Beaten:
            beaten += 1
            continue
        beaten = 0
        written += lines
        if done:
            return written + _rate_again()
    return written


@transaction.atomic
def _rate_batch() -> tuple[int, bool]:
    """(lines written, whether nothing was left). One transaction: intervals are frozen and charged together."""
    intervals = list(usage.to_count()[:BATCH])
    if not intervals:
        return 0, True
    known = list(prices())
    # Taken first: a second worker waits here, and then finds them taken.
    if not usage_services.freeze(interval_ids=[interval.pk for interval in intervals]):
        raise _Beaten
    lines: list[ChargeLine] = []
    unpriced: list[Unpriced] = []
    for interval in intervals:
        rated = _rated(interval, known)
        lines += [_line(interval, piece) for piece in rated.pieces]
        if rated.unpriced_seconds:
            unpriced.append(_unpriced(interval, rated, known))
    ChargeLine.objects.bulk_create(lines)
    Unpriced.objects.bulk_create(unpriced)
    _announce(intervals)
    return len(lines), len(intervals) < BATCH


def _rate_again() -> int:
    """Look again at what had no price and for which one has been entered since."""
    newest: dict[str, int] = {}
    for price in prices():
        sku = price.gpu_model or price.resource
        newest[sku] = max(newest.get(sku, 0), price.pk)
    return sum(_rate_unpriced(sku, number) for sku, number in newest.items())


def _rate_unpriced(sku: str, newest: int) -> int:
    written = 0
    while True:
        with transaction.atomic():
            waiting = Unpriced.objects.filter(sku=sku, newest_price__lt=newest).select_related("interval")
            rows = list(waiting.order_by("pk")[:BATCH])
            mine = [row for row in rows if _claim(row, newest)]
            written += _charge_late([row for row in mine if not row.interval.charge_lines.exists()])
        if len(rows) < BATCH:
            return written


def _claim(row: Unpriced, newest: int) -> bool:
    """Whether this worker, and no other, looks at it for this price."""
    return bool(Unpriced.objects.filter(pk=row.pk, newest_price=row.newest_price).update(newest_price=newest))


def _charge_late(rows: Sequence[Unpriced]) -> int:
    """Charge intervals of which nothing was charged before."""
    known = list(prices())
    lines: list[ChargeLine] = []
    intervals = [row.interval for row in rows]
    for row, interval in zip(rows, intervals, strict=True):
        rated = _rated(interval, known)
        lines += [_line(interval, piece) for piece in rated.pieces]
        if rated.unpriced_seconds:
            Unpriced.objects.filter(pk=row.pk).update(seconds=rated.unpriced_seconds)
        else:
            row.delete()
    ChargeLine.objects.bulk_create(lines)
    _announce(intervals)
    return len(lines)


def _rated(interval: Interval, known: Sequence[Price]) -> Rated:
    return rate_one(interval, known, currency=settings.BEAMTIME_CURRENCY, zone=ZoneInfo(settings.TIME_ZONE))


def _line(interval: Interval, piece: Piece) -> ChargeLine:
    return ChargeLine(
        id=charge_id(interval.pk, piece),
        interval=interval,
        price=piece.price,
        job_id=interval.job_id,
        team_id=interval.team_id,
        started_at=piece.started_at,
        ended_at=piece.ended_at,
        seconds=piece.seconds,
        units=piece.units,
        price_per_hour=piece.price.amount,
        currency=piece.price.currency,
        raw=piece.raw,
        estimated=interval.estimated,
    )


def _unpriced(interval: Interval, rated: Rated, known: Sequence[Price]) -> Unpriced:
    applicable = prices_of(interval, known, settings.BEAMTIME_CURRENCY)
    return Unpriced(
        interval=interval,
        job_id=interval.job_id,
        team_id=interval.team_id,
        sku=sku_of(interval),
        seconds=rated.unpriced_seconds,
        newest_price=max((price.pk for price in applicable), default=0),
    )


def _announce(intervals: Sequence[Interval]) -> None:
    for job_id in {interval.job_id for interval in intervals}:
        bus.announce(f"job:{job_id}", kind="cost")
