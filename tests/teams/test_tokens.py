"""Tokens of programs: made once, shown once, ended at once."""

from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.audit.models import Entry
from portal.core.clock import now
from portal.core.errors import Forbidden, Missing, Refused
from portal.teams import services
from portal.teams.models import ApiToken, Scope, User
from portal.teams.services import tokens

DAY = timedelta(days=1)


def test_a_token_opens_its_persons_rights_and_is_kept_only_as_a_digest(member: User) -> None:
    token, text = services.issue_token(user=member, name="laptop", scope=Scope.READ, lifetime=DAY)

    found = services.authenticate_token(text)
    assert found is not None
    assert (found.user, found.scope) == (member, Scope.READ)
    assert text not in str(ApiToken.objects.filter(pk=token.pk).values().get())
    assert text.startswith(token.prefix)
    assert text not in str(list(Entry.objects.values()))


@pytest.mark.parametrize("text", ["", "bt_", "bt_wrong", "Bearer", "x" * 10_000, "bt_ü", "bt_\x00"])
@pytest.mark.django_db
def test_an_unknown_text_opens_nothing(text: str) -> None:
    assert services.authenticate_token(text) is None


def test_an_expired_token_opens_nothing(member: User) -> None:
    _, text = services.issue_token(user=member, name="laptop", scope=Scope.READ, lifetime=DAY)
    with time_machine.travel(now() + DAY + timedelta(seconds=1)):
        assert services.authenticate_token(text) is None


def test_a_revoked_token_opens_nothing(member: User) -> None:
    token, text = services.issue_token(user=member, name="laptop", scope=Scope.READ, lifetime=DAY)
    services.revoke_token(user=member, token_id=token.pk)
    services.revoke_token(user=member, token_id=token.pk)
    assert services.authenticate_token(text) is None
    assert Entry.objects.filter(action="token.revoke").count() == 1


def test_the_token_of_an_inactive_person_opens_nothing(member: User) -> None:
    _, text = services.issue_token(user=member, name="laptop", scope=Scope.READ, lifetime=DAY)
    User.objects.filter(pk=member.pk).update(is_active=False)
    assert services.authenticate_token(text) is None


def test_another_persons_token_looks_like_none(member: User, outsider: User) -> None:
    token, text = services.issue_token(user=member, name="laptop", scope=Scope.READ, lifetime=DAY)
    with pytest.raises(Missing):
        services.revoke_token(user=outsider, token_id=token.pk)
    with pytest.raises(Missing):
        services.revoke_token(user=outsider, token_id=token.pk + 1000)
    with pytest.raises(Forbidden):
        services.revoke_token_as_admin(actor=outsider, token=token)
    assert services.authenticate_token(text) is not None


def test_an_administrator_ends_anybodys_token(member: User, admin_user: User) -> None:
    token, text = services.issue_token(user=member, name="laptop", scope=Scope.READ, lifetime=DAY)
    services.revoke_token_as_admin(actor=admin_user, token=token)
    assert services.authenticate_token(text) is None
    assert Entry.objects.get(action="token.revoke").after == {"owner": "member"}


@pytest.mark.parametrize(
    ("name", "scope", "lifetime", "field"),
    [
        (" ", "read", DAY, "name"),
        ("x" * 81, "read", DAY, "name"),
        ("laptop", "everything", DAY, "scope"),
        ("laptop", "read", timedelta(0), "lifetime"),
        ("laptop", "read", timedelta(days=367), "lifetime"),
    ],
)
def test_what_a_token_cannot_be_is_refused_at_its_field(
    name: str, scope: str, lifetime: timedelta, field: str, member: User
) -> None:
    with pytest.raises(Refused) as refused:
        services.issue_token(user=member, name=name, scope=scope, lifetime=lifetime)
    assert [problem.field for problem in refused.value.problems] == [field]


def test_there_is_a_most_of_tokens_and_it_says_so(member: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_TOKENS", 2)
    first, _ = services.issue_token(user=member, name="a", scope="read", lifetime=DAY)
    services.issue_token(user=member, name="b", scope="read", lifetime=DAY)
    with pytest.raises(Refused, match="2 tokens, which is the most"):
        services.issue_token(user=member, name="c", scope="read", lifetime=DAY)
    services.revoke_token(user=member, token_id=first.pk)
    services.issue_token(user=member, name="c", scope="read", lifetime=DAY)


def test_the_last_use_is_written_at_most_once_a_minute(member: User) -> None:
    token, text = services.issue_token(user=member, name="laptop", scope=Scope.READ, lifetime=DAY)
    start = now()
    with time_machine.travel(start, tick=False):
        services.authenticate_token(text)
    with time_machine.travel(start + timedelta(seconds=59), tick=False), CaptureQueriesContext(connection) as queries:
        services.authenticate_token(text)
    assert len(queries) == 1
    token.refresh_from_db()
    assert token.last_used_at == start
    with time_machine.travel(start + timedelta(seconds=60), tick=False):
        services.authenticate_token(text)
    token.refresh_from_db()
    assert token.last_used_at == start + timedelta(seconds=60)
