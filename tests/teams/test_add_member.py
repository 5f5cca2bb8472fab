"""Letting a person into a team."""

import pytest

from portal.audit.models import Entry
from portal.core.errors import Forbidden, Refused
from portal.teams import services
from portal.teams.models import Membership, Role, Team, User
from portal.teams.selectors import teams_visible_to


def test_a_lead_adds_a_person_who_sees_the_team_at_once(team: Team, lead: User, outsider: User) -> None:
    membership = services.add_member(actor=lead, team=team, username="outsider", role=Role.MEMBER)

    assert membership.role == Role.MEMBER
    assert team in teams_visible_to(outsider)
    entry = Entry.objects.get(action="team.add_member")
    assert (entry.actor, entry.after) == (lead, {"username": "outsider", "role": "member"})


def test_an_administrator_adds_a_person_to_any_team(team: Team, admin_user: User, outsider: User) -> None:
    assert services.add_member(actor=admin_user, team=team, username="outsider", role=Role.LEAD).role == Role.LEAD


def test_a_person_is_found_by_mail_address_too(team: Team, lead: User, outsider: User) -> None:
    assert services.add_member(actor=lead, team=team, username=" Outsider@example.org ", role="member").user == outsider


@pytest.mark.parametrize("who", ["member", "auditor", "outsider"])
def test_nobody_else_may_add_people(
    who: str, team: Team, member: User, auditor: User, outsider: User, admin_user: User
) -> None:
    actor = {"member": member, "auditor": auditor, "outsider": outsider}[who]
    with pytest.raises(Forbidden):
        services.add_member(actor=actor, team=team, username="admin", role=Role.MEMBER)
    assert not Membership.objects.filter(team=team, user=admin_user).exists()
    assert not Entry.objects.exists()


@pytest.mark.parametrize(
    ("username", "role", "field"),
    [
        ("nobody", "member", "username"),
        ("", "member", "username"),
        ("lead", "member", "username"),
        ("outsider", "owner", "role"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    username: str, role: str, field: str, team: Team, lead: User, outsider: User
) -> None:
    with pytest.raises(Refused) as refused:
        services.add_member(actor=lead, team=team, username=username, role=role)
    assert [problem.field for problem in refused.value.problems] == [field]


def test_an_inactive_account_reads_like_no_account(team: Team, lead: User, outsider: User) -> None:
    with pytest.raises(Refused) as unknown:
        services.add_member(actor=lead, team=team, username="nobody", role=Role.MEMBER)
    User.objects.filter(pk=outsider.pk).update(is_active=False)
    with pytest.raises(Refused) as inactive:
        services.add_member(actor=lead, team=team, username="outsider", role=Role.MEMBER)
    assert str(inactive.value) == str(unknown.value)


def test_two_accounts_with_one_mail_address_are_not_guessed_between(team: Team, lead: User, outsider: User) -> None:
    User.objects.create(username="outsider2", email=outsider.email)
    with pytest.raises(Refused, match="Type the user name"):
        services.add_member(actor=lead, team=team, username=outsider.email, role=Role.MEMBER)


def test_a_closed_team_takes_nobody(team: Team, lead: User, outsider: User, admin_user: User) -> None:
    services.close_team(actor=admin_user, team=team)
    with pytest.raises(Refused, match="closed"):
        services.add_member(actor=lead, team=team, username="outsider", role=Role.MEMBER)
