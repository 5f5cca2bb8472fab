"""Cutting, summing and rounding: pure, exact, and the same whatever the order."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from portal.core.money import to_amount, whole_seconds
from portal.costs.policy import by_day, charge_id, month_borders, month_of, rate, shares, total
from portal.funds.models import Price
from portal.usage.models import Interval
from tests.costs.factory import NOON, at

BERLIN = ZoneInfo("Europe/Berlin")
amounts = st.decimals(min_value=0, max_value=1000, places=10)


def price(number: int, amount: Decimal | str, valid_from: datetime, **fields: str) -> Price:
    values = {"resource": "gpu", "gpu_model": "NVIDIA H100", "currency": "EUR", **fields}
    return Price(pk=number, amount=Decimal(amount), valid_from=valid_from, **values)


def held(
    start: datetime, end: datetime | None, units: Decimal = Decimal(1), resource: str = "nvidia.com/gpu"
) -> Interval:
    model = "" if resource in {"cpu", "memory"} else "NVIDIA H100"
    return Interval(pk=7, resource=resource, gpu_model=model, units=units, started_at=start, ended_at=end)


moments = st.integers(-4_000_000, 4_000_000).map(at)
prices = st.lists(st.tuples(amounts, st.one_of(moments, st.integers(0, 10_000).map(at))), max_size=6).map(
    lambda rows: [
        price(number, amount, when + timedelta(microseconds=number * 137))
        for number, (amount, when) in enumerate({when: (amount, when) for amount, when in rows}.values(), 1)
    ]
)


@given(known=prices, seconds=st.integers(0, 8_000_000), units=st.decimals(Decimal("0.001"), 64, places=3))
@settings(max_examples=150, deadline=None)
def test_the_pieces_of_any_cut_are_exactly_the_whole(known: list[Price], seconds: int, units: Decimal) -> None:
    interval = held(NOON, at(seconds), units)
    rated = rate(interval, known, currency="EUR", zone=BERLIN)
    assert sum(piece.seconds for piece in rated.pieces) + rated.unpriced_seconds == seconds
    for one, other in zip(rated.pieces, rated.pieces[1:], strict=False):
        assert one.ended_at == other.started_at
    for piece in rated.pieces:
        assert piece.seconds == whole_seconds(piece.ended_at - piece.started_at) > 0
        local = piece.started_at.astimezone(BERLIN), (piece.ended_at - timedelta(seconds=1)).astimezone(BERLIN)
        assert (local[0].year, local[0].month) == (local[1].year, local[1].month)
    # The same, second by second, with fractions: an independent reference for short intervals.
    if seconds <= 3000:
        reference = Fraction(0)
        for second in range(seconds):
            valid = [p for p in known if p.valid_from.replace(microsecond=0) <= at(second)]
            if valid:
                reference += Fraction(max(valid, key=lambda p: p.valid_from).amount) * Fraction(units)
        assert Fraction(total(piece.raw for piece in rated.pieces)) == reference


@given(known=prices, seconds=st.integers(1, 100_000), cut=st.integers(0, 100_000), order=st.randoms())
@settings(max_examples=100, deadline=None)
def test_cutting_an_interval_in_two_and_shuffling_the_prices_changes_no_sum(
    known: list[Price], seconds: int, cut: int, order: object
) -> None:
    cut = min(cut, seconds)
    whole = rate(held(NOON, at(seconds)), known, currency="EUR", zone=BERLIN)
    shuffled = list(known)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    first = rate(held(NOON, at(cut)), shuffled, currency="EUR", zone=BERLIN)
    second = rate(held(at(cut), at(seconds)), shuffled, currency="EUR", zone=BERLIN)
    parts = [piece.raw for piece in (*first.pieces, *second.pieces)]
    assert total(parts) == total(piece.raw for piece in whole.pieces)
    assert first.unpriced_seconds + second.unpriced_seconds == whole.unpriced_seconds
    again = rate(held(NOON, at(seconds)), shuffled, currency="EUR", zone=BERLIN)
    assert [charge_id(7, piece) for piece in again.pieces] == [charge_id(7, piece) for piece in whole.pieces]


def test_a_price_of_another_currency_resource_or_model_is_not_used() -> None:
    others = [
        price(1, "1", at(-9), currency="USD"),
        price(2, "2", at(-9), gpu_model="NVIDIA A100"),
        price(3, "3", at(-9), resource="cpu", gpu_model=""),
    ]
    assert rate(held(NOON, at(60)), others, currency="EUR", zone=BERLIN) == ((), 60)
    cpu = rate(held(NOON, at(60), resource="cpu"), others, currency="EUR", zone=BERLIN)
    assert [piece.price.pk for piece in cpu.pieces] == [3]
    unknown = Interval(resource="nvidia.com/gpu", gpu_model="", units=Decimal(1), started_at=NOON, ended_at=at(60))
    assert rate(unknown, others, currency="EUR", zone=BERLIN).unpriced_seconds == 60


def test_a_day_may_have_23_or_25_hours() -> None:
    spring = datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC)
    assert list(by_day(*spring, BERLIN)) == [(date(2026, 3, 29), 23 * 3600)]
    autumn = datetime(2026, 10, 24, 22, tzinfo=UTC), datetime(2026, 10, 25, 23, tzinfo=UTC)
    assert list(by_day(*autumn, BERLIN)) == [(date(2026, 10, 25), 25 * 3600)]


@given(start=st.integers(0, 30_000_000).map(at), seconds=st.integers(0, 9_000_000))
@settings(max_examples=60, deadline=None)
def test_every_second_has_one_day_and_one_month(start: datetime, seconds: int) -> None:
    end = start + timedelta(seconds=seconds)
    days = list(by_day(start, end, BERLIN))
    assert sum(count for _, count in days) == seconds
    assert len({day for day, _ in days}) == len(days)
    borders = [start, *(border for border in month_borders(start, end, BERLIN) if border > start), end]
    assert borders == sorted(borders)


def test_a_month_is_half_open_in_the_site_s_zone() -> None:
    assert month_of(date(2026, 10, 31), BERLIN) == (
        datetime(2026, 9, 30, 22, tzinfo=UTC),
        datetime(2026, 10, 31, 23, tzinfo=UTC),
    )
    assert month_of(date(2026, 12, 1), BERLIN)[1] == datetime(2026, 12, 31, 23, tzinfo=UTC)


@given(raws=st.lists(st.decimals(0, 1_000_000, places=13), max_size=20))
@settings(max_examples=150, deadline=None)
def test_shown_parts_add_up_to_the_shown_total(raws: list[Decimal]) -> None:
    amount = to_amount(total(raws))
    parts = shares(raws, amount)
    assert sum(parts, Decimal(0)) == amount
    assert all(abs(part - raw / 3600) < Decimal("0.01") for part, raw in zip(parts, raws, strict=True))


def test_equal_thirds_of_a_hundred() -> None:
    assert shares([Decimal(120_000)] * 3, Decimal(100)) == [Decimal("33.34"), Decimal("33.33"), Decimal("33.33")]
