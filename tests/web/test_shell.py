"""The frame around every page: team, counters, what is free, where one is."""

import re

import pytest

from portal.jobs.models import State
from portal.teams import services
from portal.teams.models import Membership, Role, Team, User
from tests.factories import Site, make_job
from tests.web.pages import as_person, elements, html, queries, words


def team_shown(page: object) -> str:
    """The team whose pages the navigation leads to."""
    links = [a["href"] for a in elements(page, "a") if a.get("data-bt-go") == "j"]
    return links[0].split("/")[2] if links else ""


def test_somebody_in_several_teams_switches_between_them(
    site: Site, team: Team, other_team: Team, member: User
) -> None:
    Membership.objects.create(team=other_team, user=member, role=Role.LEAD)
    client = as_person(member)
    page = client.get("/teams/vision/")
    assert team_shown(page) == "vision"
    said = words(page)
    assert "Language lead" in said
    assert "Vision member" in said
    assert team_shown(client.get("/teams/language/jobs/")) == "language"


def test_pages_outside_a_team_keep_the_one_looked_at_last(
    site: Site, team: Team, other_team: Team, member: User
) -> None:
    Membership.objects.create(team=other_team, user=member)
    client = as_person(member)
    client.get("/teams/vision/")
    assert team_shown(client.get("/queues/")) == "vision"
    client.get("/teams/language/jobs/")
    assert team_shown(client.get("/queues/")) == "language"
    client.get("/teams/vision/jobs/rows/", headers={"HX-Request": "true"})
    assert team_shown(client.get("/")) == "language"


def test_a_team_that_one_left_is_forgotten(site: Site, team: Team, other_team: Team, member: User, lead: User) -> None:
    Membership.objects.create(team=other_team, user=member)
    client = as_person(member)
    client.get("/teams/vision/")
    services.remove_member(actor=lead, team=team, user=member)
    page = client.get("/queues/")
    assert team_shown(page) == "language"
    assert "Vision" not in words(page)


def test_one_team_needs_no_menu_and_none_no_links(site: Site, team: Team, member: User, other_team: Team) -> None:
    assert "Your teams" not in words(as_person(member).get("/queues/"))
    Membership.objects.filter(user=member).delete()
    assert team_shown(as_person(member).get("/queues/")) == ""


def test_running_jobs_and_free_gpus_stand_beside(site: Site, team: Team, member: User) -> None:
    for _ in range(2):
        make_job(team, member, site.gpu, state=State.RUNNING)
    said = words(as_person(member).get("/accounts/tokens/"))
    assert "Jobs 2 running" in said
    assert "Free now H100 (pretended) 4" in said


@pytest.mark.parametrize(
    ("address", "go"),
    [
        ("/", "h"),
        ("/teams/vision/", "p"),
        ("/teams/vision/jobs/", "j"),
        ("/teams/vision/submit/", "s"),
        ("/teams/vision/costs/", "c"),
        ("/queues/", "q"),
    ],
)
def test_the_navigation_says_where_one_is(address: str, go: str, site: Site, team: Team, member: User) -> None:
    page = as_person(member).get(address)
    here = [a["data-bt-go"] for a in elements(page, "a") if a.get("aria-current") == "page" and "data-bt-go" in a]
    assert here == [go]
    assert len(elements(page, "h1")) == 1


def test_the_admin_is_offered_to_those_who_may(site: Site, team: Team, member: User, admin_user: User) -> None:
    assert "Administration" in words(as_person(admin_user).get("/"))
    assert "Administration" not in words(as_person(member).get("/"))


def test_closed_teams_come_last_and_say_so(site: Site, team: Team, other_team: Team, admin_user: User) -> None:
    services.close_team(actor=admin_user, team=other_team)
    said = words(as_person(admin_user).get("/queues/"))
    assert re.search(r"Your teams VI Vision.*LA Language closed", said)


def test_many_teams_cost_no_more_questions_than_one(site: Site, team: Team, admin_user: User) -> None:
    client = as_person(admin_user)
    first = len(queries(lambda: client.get("/queues/")))
    for number in range(30):
        Team.objects.create(slug=f"team-{number}", name=f"Team {number}")
    assert len(queries(lambda: client.get("/queues/"))) == first


def test_a_team_name_is_text(site: Site, team: Team, member: User) -> None:
    Team.objects.filter(pk=team.pk).update(name="<img src=x onerror=alert(1)>")
    for address in ("/", "/teams/vision/", "/teams/vision/jobs/", "/teams/vision/submit/", "/teams/vision/costs/"):
        assert "<img" not in html(as_person(member).get(address)), address
