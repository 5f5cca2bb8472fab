"""Ending a person's access to a team."""

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from portal.audit.models import Entry
from portal.core import bus
from portal.core.errors import Forbidden, Missing, Refused
from portal.teams import services
from portal.teams.models import Membership, Role, Team, User
from portal.teams.selectors import teams_visible_to


def test_access_ends_at_once(team: Team, lead: User, member: User) -> None:
    services.remove_member(actor=lead, team=team, user=member)

    assert team not in teams_visible_to(member)
    assert Entry.objects.get(action="team.remove_member").before == {"username": "member", "role": "member"}


def test_open_pages_of_the_person_are_told(
    team: Team,
    lead: User,
    member: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[bus.Message] = []
    monkeypatch.setattr(bus.hub(), "deliver", heard.append)
    with django_capture_on_commit_callbacks(execute=True):
        services.remove_member(actor=lead, team=team, user=member)
    assert bus.Message(f"user:{member.pk}", {"kind": "rights"}) in heard


def test_a_member_may_leave(team: Team, lead: User, member: User) -> None:
    services.remove_member(actor=member, team=team, user=member)
    assert team not in teams_visible_to(member)


def test_a_member_may_not_remove_others(team: Team, lead: User, member: User) -> None:
    with pytest.raises(Forbidden):
        services.remove_member(actor=member, team=team, user=lead)
    assert Membership.objects.filter(team=team, user=lead).exists()


def test_somebody_who_is_not_in_the_team_cannot_be_removed(team: Team, lead: User, outsider: User) -> None:
    with pytest.raises(Missing):
        services.remove_member(actor=lead, team=team, user=outsider)


def test_the_last_lead_stays_until_there_is_another(team: Team, lead: User, member: User) -> None:
    with pytest.raises(Refused, match="needs a lead"):
        services.remove_member(actor=lead, team=team, user=lead)
    services.change_role(actor=lead, team=team, user=member, role=Role.LEAD)
    services.remove_member(actor=lead, team=team, user=lead)
    assert [m.user for m in team.memberships.all()] == [member]


def test_an_administrator_may_remove_even_the_last_lead(team: Team, lead: User, admin_user: User) -> None:
    services.remove_member(actor=admin_user, team=team, user=lead)
    assert not team.memberships.exists()


def test_a_lead_of_another_team_may_not(team: Team, other_team: Team, member: User, outsider: User) -> None:
    Membership.objects.filter(user=outsider).update(role=Role.LEAD)
    with pytest.raises(Forbidden):
        services.remove_member(actor=outsider, team=team, user=member)
