"""What an administrator may look for in the admin's lists, and what is too long for it."""

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from portal.config.adminsite import LONGEST
from portal.teams.models import Team, User

SEARCHED = [model for model, desk in admin.site._registry.items() if desk.search_fields]


@pytest.fixture
def desk(client: Client, admin_user: User) -> Client:
    client.force_login(admin_user)
    return client


@pytest.mark.parametrize("model", SEARCHED, ids=lambda model: model._meta.label)
def test_what_is_too_long_is_left_out_and_that_is_said(desk: Client, model: type[Model]) -> None:
    page = desk.get(_list_of(model), {"q": "x" * 60_000}, follow=True)
    assert page.status_code == 200
    assert f"At most {LONGEST} characters can be looked for" in page.content.decode()
    assert "xxx" not in page.content.decode()


@pytest.mark.parametrize("model", SEARCHED, ids=lambda model: model._meta.label)
@pytest.mark.parametrize("words", ["x" * LONGEST, "x " * (LONGEST // 2), "\U0001f600" * LONGEST, "%_" * (LONGEST // 2)])
def test_what_is_as_long_as_it_may_be_is_looked_for(desk: Client, model: type[Model], words: str) -> None:
    page = desk.get(_list_of(model), {"q": words})
    assert page.status_code == 200
    assert "can be looked for" not in page.content.decode()


def test_filters_and_the_fields_of_forms_are_bounded_too(desk: Client, team: Team) -> None:
    page = desk.get(_list_of(Team), {"name__icontains": "x" * 60_000, "q": team.name}, follow=True)
    assert page.status_code == 200
    assert page.redirect_chain == [(f"{_list_of(Team)}?q={team.name}", 302)]
    field = {"app_label": "logs", "model_name": "retention", "field_name": "team"}
    assert desk.get("/admin/autocomplete/", field | {"term": "x" * 60_000}, follow=True).status_code == 200
    found = desk.get("/admin/autocomplete/", field | {"term": team.name}).json()["results"]
    assert [each["text"] for each in found] == [str(team)]


def test_who_is_no_administrator_is_told_nothing_but_to_sign_in(client: Client, member: User) -> None:
    client.force_login(member)
    answer = client.get(_list_of(Team), {"q": "x" * 1000})
    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login/")


def _list_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
