"""What a job costs at most, said before the click."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.clock import now
from portal.funds import selectors
from portal.funds.models import Price
from portal.funds.policy import estimate, estimate_as_given, price_at
from portal.funds.specs import Estimate
from tests import factories

H100 = "NVIDIA H100"


def _price(resource: str, amount: str, *, gpu_model: str = "", days: int = -10) -> Price:
    return Price(
        resource=resource,
        gpu_model=gpu_model,
        amount=Decimal(amount),
        currency="EUR",
        valid_from=now() + timedelta(days=days),
    )


def _estimate(*prices: Price, **fields: Any) -> Estimate:
    values: dict[str, Any] = {
        "gpus": 0, "gpu_models": [], "cores": Decimal(8), "gib": Decimal(64), "runs": 1, "seconds": 3600,
        "at": now(), "currency": "EUR", **fields,
    }  # fmt: skip
    return estimate(prices, **values)


def test_gpus_times_price_times_limit() -> None:
    found = _estimate(_price("gpu", "2.40", gpu_model=H100), gpus=8, gpu_models=[H100], seconds=8 * 3600)
    assert (found.amount, found.per_hour, found.missing) == (Decimal("153.60"), Decimal("19.20"), ())


def test_a_job_for_any_model_is_reckoned_anew_once_it_has_one() -> None:
    prices = [
        _price("gpu", "2.40", gpu_model=H100),
        _price("gpu", "1.10", gpu_model="NVIDIA A100"),
        _price("cpu", "0.01"),
    ]
    told = _estimate(*prices, gpus=1, gpu_models=[H100, "NVIDIA A100"], seconds=900)
    assert told.amount == Decimal("0.62")
    given = estimate_as_given(told, prices, gpu_model="NVIDIA A100", at=now())
    assert (given.amount, given.per_hour, given.seconds) == (Decimal("0.30"), Decimal("1.18"), 900)
    assert estimate_as_given(told, prices, gpu_model="", at=now()) == told
    assert estimate_as_given(told, prices, gpu_model=H100, at=now()) == told
    assert estimate_as_given(told, prices, gpu_model="NVIDIA B200", at=now()).missing == ("NVIDIA B200",)


def test_all_runs_of_an_array_count() -> None:
    found = _estimate(_price("gpu", "2.40", gpu_model=H100), gpus=1, gpu_models=[H100], runs=10)
    assert found.amount == Decimal("24.00")


def test_cores_and_memory_count_where_they_have_a_price() -> None:
    found = _estimate(_price("cpu", "0.01"), _price("memory", "0.001"))
    assert [(line.sku, line.units, line.per_hour) for line in found.lines] == [
        ("cpu", Decimal(8), Decimal("0.08")),
        ("memory", Decimal(64), Decimal("0.064")),
    ]
    assert found.amount == Decimal("0.14")


def test_a_gpu_without_a_price_makes_the_sum_unknown_never_zero() -> None:
    found = _estimate(_price("cpu", "0.01"), gpus=1, gpu_models=[H100])
    assert (found.amount, found.per_hour, found.missing) == (None, None, (H100,))


def test_a_job_of_cores_without_any_price_lacks_one() -> None:
    found = _estimate()
    assert (found.amount, found.missing) == (None, ("cpu",))


def test_a_gpu_that_kueue_picks_among_several_has_no_price_yet() -> None:
    found = _estimate(_price("gpu", "2.40", gpu_model=H100), gpus=1)
    assert found.missing == ("GPU",)


def test_without_a_time_limit_only_the_hour_is_known() -> None:
    found = _estimate(_price("cpu", "0.5"), seconds=None)
    assert (found.amount, found.per_hour) == (None, Decimal("4.00"))


def test_a_price_of_zero_on_purpose_is_free() -> None:
    found = _estimate(_price("cpu", "0"))
    assert (found.amount, found.missing) == (Decimal("0.00"), ())


def test_a_price_in_another_currency_is_no_price_of_ours() -> None:
    other = _price("cpu", "1")
    other.currency = "USD"
    assert _estimate(other).missing == ("cpu",)


def test_case_73_a_unit_costs_what_the_table_says_whatever_else_is_there() -> None:
    prices = (_price("gpu", "1", gpu_model=H100), _price("cpu", "1"), _price("memory", "1"))
    without = _estimate(*prices)
    beside = _estimate(*prices, gpus=1, gpu_models=[H100])
    for found in (without, beside):
        assert {line.price_per_hour for line in found.lines} == {Decimal(1)}
    assert beside.per_hour == (without.per_hour or 0) + 1


def test_the_price_of_a_moment_is_the_last_that_began_by_then() -> None:
    prices = [_price("cpu", "1", days=-30), _price("cpu", "2", days=-10), _price("cpu", "3", days=10)]

    def amount(days: int) -> Decimal | None:
        found = price_at(prices, resource="cpu", gpu_model="", at=now() + timedelta(days=days))
        return found.amount if found else None

    assert [amount(days) for days in (-40, -20, 0, 20)] == [None, Decimal(1), Decimal(2), Decimal(3)]
    edge = price_at(prices, resource="cpu", gpu_model="", at=prices[1].valid_from)
    assert edge is prices[1], "it counts from its first moment on"


@given(st.decimals(0, 10**6, places=4), st.integers(0, 64), st.integers(1, 50), st.none() | st.integers(1, 10**7))
def test_an_estimate_survives_its_trip_through_json(price: Decimal, gpus: int, runs: int, seconds: int | None) -> None:
    found = _estimate(
        _price("gpu", str(price), gpu_model=H100), gpus=gpus, gpu_models=[H100], runs=runs, seconds=seconds
    )
    assert Estimate.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_the_sites_prices_are_read_in_one_query(site: factories.Site, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        found = selectors.estimate_for(
            gpus=2, gpu_models=[H100], cores=Decimal(8), gib=Decimal(64), runs=1, seconds=3600, at=now()
        )
    assert found.amount == Decimal("4.80")


@pytest.mark.parametrize("seconds", [1, 900, 3599])
def test_case_71_seconds_are_never_rounded_up(seconds: int) -> None:
    found = _estimate(_price("cpu", "3600"), cores=Decimal(1), seconds=seconds)
    assert found.amount == Decimal(seconds)


def test_of_several_models_the_dearest_counts_because_it_is_at_most() -> None:
    prices = (_price("gpu", "1.10", gpu_model="A100"), _price("gpu", "2.40", gpu_model=H100))
    found = _estimate(*prices, gpus=1, gpu_models=["A100", H100])
    assert (found.amount, found.lines[0].sku) == (Decimal("2.40"), H100)


def test_a_model_without_a_price_among_several_makes_the_most_unknown() -> None:
    found = _estimate(_price("gpu", "1.10", gpu_model="A100"), gpus=1, gpu_models=["A100", H100])
    assert (found.amount, found.missing) == (None, (H100,))
