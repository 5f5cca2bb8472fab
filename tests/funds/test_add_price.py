"""Prices: entered with a date, never changed, never taken away."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, InternalError, transaction

from portal.audit.models import Entry
from portal.core.clock import now
from portal.core.errors import Forbidden, Problem, Refused
from portal.funds.models import Price
from portal.funds.policy import read_amount
from portal.funds.services import add_price
from portal.teams.models import User
from tests import factories

REFUSALS = (IntegrityError, InternalError)


def _problem(**fields: object) -> Problem:
    values = {"actor": None, "resource": "gpu", "gpu_model": "NVIDIA H100", "amount": Decimal("2.40"), **fields}
    with pytest.raises(Refused) as caught:
        add_price(**values)  # type: ignore[arg-type]
    (problem,) = caught.value.problems
    return problem


def test_an_administrator_enters_a_price_from_now_on(admin_user: User) -> None:
    before = now()
    price = add_price(actor=admin_user, resource="gpu", gpu_model="NVIDIA H100", amount=Decimal("2.40"))
    price.refresh_from_db()
    assert (price.amount, price.currency, price.created_by) == (Decimal("2.40"), "EUR", admin_user)
    assert before <= price.valid_from <= now()
    assert Entry.objects.get().after["amount"] == "2.40"


def test_nobody_else_enters_prices(member: User, lead: User, auditor: User) -> None:
    for person in (member, lead, auditor):
        with pytest.raises(Forbidden):
            add_price(actor=person, resource="cpu", amount=Decimal(1))
    assert not Price.objects.exists()


def test_a_newer_price_ends_the_older_and_a_price_to_come_is_fine(db: None) -> None:
    add_price(actor=None, resource="cpu", amount=Decimal("0.01"))
    add_price(actor=None, resource="cpu", amount=Decimal("0.02"), valid_from=now() + timedelta(days=30))
    assert Price.objects.count() == 2


def test_the_first_price_may_begin_in_the_past_a_second_may_not(db: None) -> None:
    """What was used at a price that was in force stays charged at it."""
    add_price(actor=None, resource="cpu", amount=Decimal("0.01"), valid_from=factories.LONG_AGO)
    problem = _problem(resource="cpu", gpu_model="", valid_from=now() - timedelta(days=1))
    assert problem.field == "valid_from"
    assert "Leave this empty to begin now" in problem.message


def test_two_prices_from_the_same_moment_are_refused(db: None) -> None:
    later = now() + timedelta(days=1)
    add_price(actor=None, resource="cpu", amount=Decimal(1), valid_from=later)
    assert _problem(resource="cpu", gpu_model="", valid_from=later).field == "valid_from"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-1", "cannot be below 0"),
        ("-0", "cannot be below 0"),
        ("1e400", "below 100,000,000"),
        ("100000000", "below 100,000,000"),
        ("0.123456789012", "10 decimals at most; this has 12"),
        ("NaN", "A price is a number"),
        ("Infinity", "A price is a number"),
        ("two", "'two' is not a number"),
        ("", "is not a number"),
        ("1.2.3", "is not a number"),
        ("1" * 10_000, "below 100,000,000"),
    ],
)
def test_bad_numbers_are_refused_with_a_message(text: str, words: str) -> None:
    problem = read_amount(text)
    assert isinstance(problem, Problem)
    assert problem.field == "amount"
    assert words in problem.message
    assert len(problem.message) < 200


@pytest.mark.parametrize(
    ("text", "amount"),
    [("2.40", "2.40"), ("2,40", "2.40"), ("0", "0"), ("1e1", "10"), ("0.1234567890000", "0.123456789"), (" 3 ", "3")],
)
def test_good_numbers_are_taken_exactly(db: None, text: str, amount: str) -> None:
    found = read_amount(text)
    assert isinstance(found, Decimal)
    price = add_price(actor=None, resource="cpu", amount=found)
    price.refresh_from_db()
    assert price.amount == Decimal(amount)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"amount": Decimal("-1")}, "amount"),
        ({"amount": Decimal("1e400")}, "amount"),
        ({"amount": Decimal("0.123456789012")}, "amount"),
        ({"gpu_model": ""}, "gpu_model"),
        ({"resource": "cpu"}, "gpu_model"),
        ({"currency": "USD"}, "currency"),
        ({"resource": "disk", "gpu_model": ""}, "resource"),
    ],
)
def test_what_makes_no_price_is_refused_by_the_verb_too(db: None, fields: dict[str, object], field: str) -> None:
    assert _problem(**fields).field == field
    assert not Price.objects.exists()


@pytest.mark.parametrize(
    "change",
    [{"amount": Decimal(1)}, {"currency": "USD"}, {"valid_from": now()}, {"gpu_model": "NVIDIA A100"}],
)
def test_the_database_refuses_to_change_a_price(site: factories.Site, change: dict[str, object]) -> None:
    with pytest.raises(REFUSALS), transaction.atomic():
        Price.objects.update(**change)
    assert Price.objects.get().amount == Decimal("2.40")


def test_the_database_refuses_to_delete_a_price(site: factories.Site) -> None:
    with pytest.raises(REFUSALS), transaction.atomic():
        Price.objects.all()._raw_delete("default")
    assert Price.objects.count() == 1


def test_who_entered_it_may_leave(admin_user: User) -> None:
    price = add_price(actor=admin_user, resource="cpu", amount=Decimal(1))
    admin_user.delete()
    price.refresh_from_db()
    assert price.created_by is None
