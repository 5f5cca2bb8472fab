"""One's own API tokens on their page."""

import re
from datetime import timedelta

from portal.teams import services
from portal.teams.models import ApiToken, User
from tests.web.pages import as_person, html, words

ADDRESS = "/accounts/tokens/"


def test_a_token_is_shown_once_and_works(member: User) -> None:
    client = as_person(member)
    answer = client.post(ADDRESS, {"name": "laptop", "scope": "write", "days": "30"})
    text = re.search(r'value="(bt_[^"]+)"', html(answer))

    assert answer.status_code == 201
    assert text is not None
    assert "it is shown only this once" in words(answer)
    found = services.authenticate_token(text[1])
    assert found is not None
    assert found.user == member
    assert text[1] not in html(client.get(ADDRESS))


def test_an_empty_list_says_what_a_token_is_for(member: User) -> None:
    assert "No tokens yet" in words(as_person(member).get(ADDRESS))


def test_a_nameless_token_is_refused_at_its_field(member: User) -> None:
    answer = as_person(member).post(ADDRESS, {"name": " ", "scope": "read", "days": "30"})
    assert answer.status_code == 422
    assert "Name the token" in words(answer)
    assert not ApiToken.objects.exists()


def test_days_that_nobody_offered_are_refused(member: User) -> None:
    assert as_person(member).post(ADDRESS, {"name": "a", "scope": "read", "days": "99999"}).status_code == 422
    assert not ApiToken.objects.exists()


def test_a_token_is_revoked(member: User) -> None:
    token, text = services.issue_token(user=member, name="laptop", scope="read", lifetime=timedelta(days=1))
    answer = as_person(member).post(f"{ADDRESS}{token.pk}/revoke/", follow=True)
    assert "The token “laptop” no longer works." in words(answer)
    assert services.authenticate_token(text) is None


def test_somebody_elses_token_looks_like_none(member: User, outsider: User) -> None:
    token, text = services.issue_token(user=member, name="laptop", scope="read", lifetime=timedelta(days=1))
    client = as_person(outsider)
    foreign, missing = client.post(f"{ADDRESS}{token.pk}/revoke/"), client.post(f"{ADDRESS}{token.pk + 999}/revoke/")
    assert foreign.status_code == missing.status_code == 404
    assert html(foreign) == html(missing)
    assert services.authenticate_token(text) is not None
    assert token.prefix not in words(client.get(ADDRESS))


def test_a_name_is_text(member: User) -> None:
    client = as_person(member)
    client.post(ADDRESS, {"name": "<script>alert(1)</script>", "scope": "read", "days": "7"})
    assert "<script>alert" not in html(client.get(ADDRESS))
