"""From intervals and prices to charges, and from exact sums to amounts. Pure; MONEY.md has the rules in words."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import ROUND_FLOOR, Decimal
from itertools import pairwise
from typing import NamedTuple, Protocol
from uuid import UUID, uuid5

from portal.core.money import CENT, EXACT, raw_cost, whole_seconds
from portal.funds.models import Price, PricedResource

_CHARGES = UUID("b9a3c1de-7a52-5d0e-9f0d-6f3b1f2f8c11")
NOT_GPU = frozenset({"cpu", "memory"})


class Held(Protocol):
    """What is rated: an interval, or anything like it."""

    resource: str
    gpu_model: str
    units: Decimal
    started_at: datetime
    ended_at: datetime | None


class Piece(NamedTuple):
    """The part of an interval under one price, within one month: [started_at, ended_at)."""

    price: Price
    started_at: datetime
    ended_at: datetime
    seconds: int
    units: Decimal

    @property
    def raw(self) -> Decimal:
        return raw_cost(seconds=self.seconds, units=self.units, price_per_hour=self.price.amount)


class Rated(NamedTuple):
    """The priced pieces of an interval, in order, and how many of its seconds have no price."""

    pieces: tuple[Piece, ...]
    unpriced_seconds: int


def sku_of(held: Held) -> str:
    """What people call the thing that was held: the GPU model, "cpu" or "memory"."""
    return held.resource if held.resource in NOT_GPU else held.gpu_model or "GPU"


def prices_of(held: Held, prices: Iterable[Price], currency: str) -> list[Price]:
    """The prices that may apply, by beginning. A GPU of an unknown model has none."""
    is_gpu = held.resource not in NOT_GPU
    if is_gpu and not held.gpu_model:
        return []
    wanted = (PricedResource.GPU.value, held.gpu_model) if is_gpu else (held.resource, "")
    found = [price for price in prices if (price.resource, price.gpu_model) == wanted and price.currency == currency]
    return sorted(found, key=lambda price: price.valid_from)


def rate(held: Held, prices: Iterable[Price], *, currency: str, end: datetime | None = None, zone: tzinfo) -> Rated:
    """Cut an interval at price changes and at the months' borders. `end` is for one that is still open.

    The seconds of all pieces and the unpriced ones together are the interval's, whatever the prices are; the result
    depends on nothing else than what is given.
    """
    started_at, ended_at = held.started_at, held.ended_at or end or held.started_at
    valid = prices_of(held, prices, currency)
    cuts = {_second(price.valid_from) for price in valid} | set(month_borders(started_at, ended_at, zone))
    points = [started_at, *sorted(cut for cut in cuts if started_at < cut < ended_at), ended_at]
    pieces: list[Piece] = []
    unpriced = 0
    for begin, finish in pairwise(points):
        seconds = whole_seconds(finish - begin)
        # A price that begins within a second counts from that second on, so that no piece has a fraction.
        price = next((price for price in reversed(valid) if _second(price.valid_from) <= begin), None)
        if price is None:
            unpriced += seconds
        elif seconds:
            pieces.append(Piece(price, begin, finish, seconds, held.units))
    return Rated(tuple(pieces), unpriced)


def charge_id(interval_id: int, piece: Piece) -> UUID:
    """The same piece has the same id, whoever works it out and how often."""
    return uuid5(_CHARGES, f"{interval_id}|{piece.started_at.isoformat()}|{piece.price.pk}")


def total(raws: Iterable[Decimal]) -> Decimal:
    """An exact sum."""
    found = Decimal(0)
    for raw in raws:
        found = EXACT.add(found, raw)
    return found


# --- time ----------------------------------------------------------------------------------------------------------


def month_of(day: date, zone: tzinfo) -> tuple[datetime, datetime]:
    """[beginning, end) of the month that holds this day, in the site's time zone."""
    first = day.replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    return _midnight(first, zone), _midnight(following, zone)


def month_borders(start: datetime, end: datetime, zone: tzinfo) -> Iterator[datetime]:
    """The months' beginnings within [start, end)."""
    border = month_of(start.astimezone(zone).date(), zone)[1]
    while border < end:
        yield border
        border = month_of(border.astimezone(zone).date(), zone)[1]


def by_day(start: datetime, end: datetime, zone: tzinfo) -> Iterator[tuple[date, int]]:
    """(day, seconds) of a span, in the site's time zone; a day may have 23 or 25 hours, and no second has two."""
    while start < end:
        day = start.astimezone(zone).date()
        border = min(_midnight(day + timedelta(days=1), zone), end)
        yield day, whole_seconds(border - start)
        start = border


def _midnight(day: date, zone: tzinfo) -> datetime:
    # In UTC, because Python subtracts two times of one zone as a wall clock would, an hour off when clocks change.
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def _second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


# --- shown amounts -------------------------------------------------------------------------------------------------


def shares(raws: Sequence[Decimal], amount: Decimal) -> list[Decimal]:
    """`amount`, the rounded sum of all, as parts in cents that add up to it: by the largest remainder."""
    exact = [EXACT.divide(raw, Decimal(3600)) for raw in raws]
    floors = [part.quantize(CENT, rounding=ROUND_FLOOR) for part in exact]
    left = int((amount - total(floors)) / CENT)
    by_remainder = sorted(range(len(raws)), key=lambda index: exact[index] - floors[index], reverse=True)
    for index in by_remainder[: max(0, left)]:
        floors[index] += CENT
    return floors
