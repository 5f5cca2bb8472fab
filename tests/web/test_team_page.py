"""A team's page: people, roles, queues."""

from portal.quotas.models import ClusterQueue
from portal.teams import services
from portal.teams.models import Membership, Role, Team, User
from tests.factories import Site, make_user
from tests.web.pages import as_person, html, queries, words


def test_a_member_sees_people_and_queues(site: Site, team: Team, member: User, lead: User) -> None:
    said = words(as_person(member).get("/teams/vision/"))
    assert "2 people" in said
    assert "member you" in said
    assert "A lead adds and removes people" in said
    assert "H100 (pretended) 4 of 4 free" in said
    assert "Add a person" not in said


def test_a_lead_adds_somebody(site: Site, team: Team, lead: User, outsider: User) -> None:
    answer = as_person(lead).post("/teams/vision/people/add/", {"username": "outsider", "role": "member"}, follow=True)
    assert answer.redirect_chain == [("/teams/vision/", 302)]
    assert "outsider is in Vision now." in words(answer)
    assert Membership.objects.filter(team=team, user=outsider, role=Role.MEMBER).exists()


def test_a_wrong_name_comes_back_at_its_field_with_what_was_typed(site: Site, team: Team, lead: User) -> None:
    answer = as_person(lead).post("/teams/vision/people/add/", {"username": "nobdy", "role": "lead"})
    assert answer.status_code == 422
    assert "Nobody here has this user name or mail address" in words(answer)
    assert 'value="nobdy"' in html(answer)
    assert 'aria-invalid="true"' in html(answer)


def test_a_lead_makes_leads_and_removes_people(site: Site, team: Team, lead: User, member: User) -> None:
    client = as_person(lead)
    client.post("/teams/vision/people/role/", {"username": "member", "role": "lead"})
    assert Membership.objects.get(team=team, user=member).role == Role.LEAD
    answer = client.post("/teams/vision/people/remove/", {"username": "member"}, follow=True)
    assert "member is no longer in Vision." in words(answer)
    assert not Membership.objects.filter(team=team, user=member).exists()


def test_the_last_lead_is_told_why_he_stays(site: Site, team: Team, lead: User) -> None:
    client = as_person(lead)
    for address, form in (
        ("/teams/vision/people/role/", {"username": "lead", "role": "member"}),
        ("/teams/vision/people/remove/", {"username": "lead"}),
    ):
        answer = client.post(address, form, follow=True)
        assert "Vision needs a lead. Make another person a lead first." in words(answer)
    assert Membership.objects.get(team=team, user=lead).role == Role.LEAD


def test_a_member_leaves_and_the_team_is_gone_for_him(site: Site, team: Team, lead: User, member: User) -> None:
    client = as_person(member)
    answer = client.post("/teams/vision/people/remove/", {"username": "member"}, follow=True)
    assert "You have left Vision." in words(answer)
    assert client.get("/teams/vision/").status_code == 404


def test_a_member_can_do_none_of_this_to_others(site: Site, team: Team, lead: User, member: User) -> None:
    client = as_person(member)
    assert client.post("/teams/vision/people/add/", {"username": "lead"}).status_code == 403
    assert client.post("/teams/vision/people/role/", {"username": "member", "role": "lead"}).status_code == 403
    answer = client.post("/teams/vision/people/remove/", {"username": "lead"})
    assert answer.status_code == 403
    assert "This needs a lead of Vision or an administrator of the site." in words(answer)
    assert team.memberships.count() == 2


def test_somebody_of_another_team_looks_like_nobody(site: Site, team: Team, lead: User, outsider: User) -> None:
    client = as_person(lead)
    known = client.post("/teams/vision/people/remove/", {"username": "outsider"})
    unknown = client.post("/teams/vision/people/remove/", {"username": "nobody"})
    assert (known.status_code, html(known)) == (unknown.status_code, html(unknown)) == (404, html(unknown))


def test_a_closed_team_says_so(site: Site, team: Team, lead: User, admin_user: User) -> None:
    services.close_team(actor=admin_user, team=team)
    said = words(as_person(lead).get("/teams/vision/"))
    assert "no new jobs, no new people" in said
    assert "Add a person" not in said


def test_a_team_without_queues_is_told_who_opens_one(site: Site, team: Team, member: User) -> None:
    ClusterQueue.objects.update(open_to_all=False)
    assert "No queue is open to this team" in words(as_person(member).get("/teams/vision/"))


def test_names_are_text(site: Site, team: Team, member: User) -> None:
    Membership.objects.create(team=team, user=make_user("eve", first_name="<img src=x onerror=alert(1)>"))
    page = html(as_person(member).get("/teams/vision/"))
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


def test_the_page_asks_the_same_few_questions_for_few_people_and_for_many(site: Site, team: Team, member: User) -> None:
    client = as_person(member)
    client.get("/teams/vision/")
    first = len(queries(lambda: client.get("/teams/vision/")))
    for number in range(12):
        Membership.objects.create(team=team, user=make_user(f"person{number}"))
    assert len(queries(lambda: client.get("/teams/vision/"))) == first
    assert first <= 14
