"""Making leads and members."""

import pytest

from portal.audit.models import Entry
from portal.core.errors import Forbidden, Missing, Refused
from portal.teams import services
from portal.teams.models import Role, Team, User
from portal.teams.policy import Action
from portal.teams.selectors import allowed


def test_a_lead_makes_another_lead(team: Team, lead: User, member: User) -> None:
    services.change_role(actor=lead, team=team, user=member, role=Role.LEAD)
    assert allowed(member, team, Action.MANAGE_MEMBERS)
    entry = Entry.objects.get(action="team.change_role")
    assert (entry.before["role"], entry.after["role"]) == ("member", "lead")


def test_the_same_role_again_changes_nothing_and_writes_nothing(team: Team, lead: User, member: User) -> None:
    services.change_role(actor=lead, team=team, user=member, role=Role.MEMBER)
    assert not Entry.objects.exists()


def test_the_last_lead_cannot_step_down(team: Team, lead: User) -> None:
    with pytest.raises(Refused) as refused:
        services.change_role(actor=lead, team=team, user=lead, role=Role.MEMBER)
    assert refused.value.problems[0].field == "role"


def test_a_member_makes_nobody_a_lead(team: Team, member: User) -> None:
    with pytest.raises(Forbidden):
        services.change_role(actor=member, team=team, user=member, role=Role.LEAD)


def test_a_stranger_has_no_role_to_change(team: Team, lead: User, outsider: User) -> None:
    with pytest.raises(Missing):
        services.change_role(actor=lead, team=team, user=outsider, role=Role.LEAD)


def test_an_invented_role_is_refused(team: Team, lead: User, member: User) -> None:
    with pytest.raises(Refused, match="Choose member or lead"):
        services.change_role(actor=lead, team=team, user=member, role="owner")
