"""Exact inside, rounded once at the edge."""

from datetime import timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from portal.core.money import raw_cost, to_amount, whole_seconds


def test_nine_hundred_seconds_of_one_gpu() -> None:
    assert to_amount(raw_cost(seconds=900, units=Decimal(1), price_per_hour=Decimal("2.40"))) == Decimal("0.60")


def test_half_a_cent_goes_to_the_even_neighbour() -> None:
    assert to_amount(Decimal("0.005") * 3600) == Decimal("0.00")
    assert to_amount(Decimal("0.015") * 3600) == Decimal("0.02")


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=30), st.decimals("0", "999", places=3))
def test_any_cut_of_the_time_costs_what_the_whole_costs(pieces: list[int], price: Decimal) -> None:
    parts = sum((raw_cost(seconds=s, units=Decimal("1.5"), price_per_hour=price) for s in pieces), Decimal(0))
    assert parts == raw_cost(seconds=sum(pieces), units=Decimal("1.5"), price_per_hour=price)


def test_a_clock_that_runs_backwards_earns_nobody_money() -> None:
    assert whole_seconds(timedelta(seconds=-5)) == 0
