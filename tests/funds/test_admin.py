"""Entering a price in the admin."""

from decimal import Decimal

import pytest
from django.test import Client

from portal.audit.models import Entry
from portal.funds.models import Price
from portal.teams.models import User
from tests import factories

ADD = "/admin/funds/price/add/"


@pytest.fixture
def desk(client: Client, admin_user: User, site: factories.Site) -> Client:
    client.force_login(admin_user)
    return client


def _enter(desk: Client, **fields: str) -> str:
    form = {"resource": "gpu", "gpu_model": "NVIDIA H100", "amount": "3.10", "valid_from_0": "", "valid_from_1": ""}
    return desk.post(ADD, {**form, **fields}, follow=True).content.decode()


def test_a_price_from_now_on_for_a_known_model(desk: Client, admin_user: User) -> None:
    assert "NVIDIA H100" in desk.get(ADD).content.decode()
    _enter(desk)
    price = Price.objects.get(amount=Decimal("3.10"))
    assert (price.currency, price.created_by) == ("EUR", admin_user)
    assert Entry.objects.filter(action="price.add", actor_name="admin").count() == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"amount": "-1"}, "cannot be below 0"),
        ({"amount": "1e400"}, "must be below"),
        ({"amount": "0.123456789012"}, "10 decimals at most"),
        ({"amount": "many"}, "is not a number"),
        ({"gpu_model": ""}, "Name the GPU model."),
        ({"gpu_model": "NVIDIA H200"}, "NVIDIA H200"),
        ({"resource": "cpu"}, "Only a price of GPUs names a model."),
        ({"valid_from_0": "2021-01-01", "valid_from_1": "00:00"}, "in force for that time already"),
        ({"valid_from_0": "yesterday", "valid_from_1": "00:00"}, "valid date"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_stored(
    desk: Client, fields: dict[str, str], words: str
) -> None:
    assert words in _enter(desk, **fields)
    assert Price.objects.count() == 1


def test_a_price_is_shown_but_neither_changed_nor_deleted(desk: Client) -> None:
    price = Price.objects.get()
    url = f"/admin/funds/price/{price.pk}"
    assert desk.get(f"{url}/change/").status_code == 200
    assert desk.post(f"{url}/change/", {"amount": "1"}).status_code == 403
    assert desk.post(f"{url}/delete/", {"post": "yes"}).status_code == 403
    assert "NVIDIA H100" in desk.get("/admin/funds/price/").content.decode()
