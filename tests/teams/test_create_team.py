"""Making, naming and closing teams."""

import pytest

from portal.audit.models import Entry
from portal.core.errors import Forbidden, Refused
from portal.teams import services
from portal.teams.models import Team, User


def test_an_administrator_makes_a_team(admin_user: User) -> None:
    team = services.create_team(actor=admin_user, slug="robotics", name=" Robotics ")
    assert (team.slug, team.name) == ("robotics", "Robotics")
    assert Entry.objects.get(action="team.create").subject_id == str(team.pk)


@pytest.mark.parametrize(
    ("slug", "name", "fields"),
    [
        ("Robotics", "Robotics", ["slug"]),
        ("-robotics", "Robotics", ["slug"]),
        ("robotics-", "Robotics", ["slug"]),
        ("r" * 41, "Robotics", ["slug"]),
        ("", "", ["slug", "name"]),
        ("vision", "Vision again", ["slug"]),
        ("robotics", "x" * 121, ["name"]),
        ("robotics\n", "Robotics", ["slug"]),
    ],
)
def test_a_wrong_name_is_refused_at_its_field(
    slug: str, name: str, fields: list[str], team: Team, admin_user: User
) -> None:
    with pytest.raises(Refused) as refused:
        services.create_team(actor=admin_user, slug=slug, name=name)
    assert [problem.field for problem in refused.value.problems] == fields
    assert Team.objects.count() == 1


def test_a_lead_makes_no_teams(team: Team, lead: User) -> None:
    with pytest.raises(Forbidden):
        services.create_team(actor=lead, slug="robotics", name="Robotics")
    with pytest.raises(Forbidden):
        services.rename_team(actor=lead, team=team, name="Seeing")
    with pytest.raises(Forbidden):
        services.close_team(actor=lead, team=team)
    with pytest.raises(Forbidden):
        services.reopen_team(actor=lead, team=team)


def test_a_team_is_renamed_closed_and_opened_again(team: Team, admin_user: User) -> None:
    services.rename_team(actor=admin_user, team=team, name="Seeing")
    closed = services.close_team(actor=admin_user, team=team)
    assert closed.closed_at == services.close_team(actor=admin_user, team=team).closed_at
    assert services.reopen_team(actor=admin_user, team=team).closed_at is None
    actions = list(Entry.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["team.rename", "team.close", "team.reopen"]
