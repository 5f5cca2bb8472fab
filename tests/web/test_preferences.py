"""Theme and density, kept in the browser."""

import pytest

from portal.teams.models import User
from tests.factories import Site
from tests.web.pages import as_person, html

ADDRESS = "/accounts/preferences/"


def test_the_page_is_dark_from_the_next_look_on(site: Site, member: User) -> None:
    client = as_person(member)
    assert "data-bs-theme" not in html(client.get("/queues/"))
    answer = client.post(ADDRESS, {"theme": "dark", "next": "/queues/"})
    assert answer.headers["Location"] == "/queues/"
    assert 'data-bs-theme="dark"' in html(client.get("/queues/"))
    client.post(ADDRESS, {"theme": ""})
    assert "data-bs-theme" not in html(client.get("/queues/"))


def test_rows_are_dense_until_comfort_is_asked_for(site: Site, member: User) -> None:
    client = as_person(member)
    client.post(ADDRESS, {"density": "dense"})
    assert 'data-bt-density="dense"' in html(client.get("/queues/"))
    client.post(ADDRESS, {"density": "comfortable"})
    assert "data-bt-density" not in html(client.get("/queues/"))


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "\\\\evil", ""])
def test_nobody_is_led_away(back: str, site: Site, member: User) -> None:
    assert as_person(member).post(ADDRESS, {"theme": "dark", "next": back}).headers["Location"] == "/"


def test_a_theme_that_nobody_offered_is_none(site: Site, member: User) -> None:
    client = as_person(member)
    client.post(ADDRESS, {"theme": '"><script>'})
    assert "data-bs-theme" not in html(client.get("/queues/"))
