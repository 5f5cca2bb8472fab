"""`manage.py token`: what a script needs, and nothing around it."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from portal.core.clock import now
from portal.teams.models import ApiToken, Scope, User
from portal.teams.services import authenticate_token


def test_the_token_stands_alone_on_its_line_and_works(member: User, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("token", "member")
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    token = authenticate_token(printed.strip())
    assert token is not None
    assert token.user == member
    assert token.scope == Scope.WRITE


def test_scope_name_and_days_are_those_asked_for(member: User) -> None:
    call_command("token", "member", "--scope", "read", "--name", "nightly", "--days", "2")
    token = ApiToken.objects.get()
    assert (token.scope, token.name) == (Scope.READ, "nightly")
    assert abs(token.expires_at - now() - timedelta(days=2)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nobody"], "nobody"), (["member", "--days", "0"], "366 days"), (["member", "--name", ""], "1 to 80")],
)
def test_what_cannot_be_done_is_said_with_the_remedy(member: User, arguments: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("token", *arguments)
    assert not ApiToken.objects.exists()
