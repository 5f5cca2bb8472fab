"""The first page: what concerns me now."""

import re
from datetime import timedelta

import pytest

from portal.catalog.services import install_shipped
from portal.core.clock import now
from portal.jobs.models import State
from portal.teams import services
from portal.teams.models import Team, User
from tests.factories import Site, make_job, make_user
from tests.web.pages import as_person, elements, html, queries, words


def test_a_newcomer_is_given_one_thing_to_do_first(site: Site, team: Team, member: User) -> None:
    install_shipped()
    page = as_person(member).get("/")
    said = words(page)

    assert "Welcome, member" in said
    assert "You are a member of Vision." in said
    assert "No jobs of yours yet" in said
    main = [link for link in elements(page, "a") if "bt-btn--main" in link.get("class", "")]
    assert [link["href"] for link in main] == ["/teams/vision/submit/train-small-model/"]


def test_somebody_without_a_team_is_told_what_to_do(site: Site) -> None:
    said = words(as_person(make_user("nora")).get("/"))
    assert "You are in no team yet. A lead adds you by your user name or mail address." in said
    assert "Be added to a team" in said


def test_my_jobs_stand_there_with_what_they_wait_for(site: Site, team: Team, member: User, lead: User) -> None:
    reason = "No room now: 2 more GPUs needed in flavor h100. It starts by itself."
    make_job(team, member, site.gpu, state=State.QUEUED, name="mine waits", reason=reason)
    make_job(team, member, site.gpu, state=State.SUCCEEDED, name="mine ended", ended_at=now())
    long_ago = now() - timedelta(days=3)
    make_job(team, member, site.gpu, state=State.SUCCEEDED, name="mine of before", ended_at=long_ago)
    make_job(team, lead, site.gpu, state=State.RUNNING, name="not mine")

    said = words(as_person(member).get("/"))

    assert "1 job of yours is going on." in said
    assert "mine waits No room now: 2 more GPUs needed in flavor h100" in said
    assert said.index("mine waits") < said.index("mine ended")
    assert "mine of before" not in said
    assert "not mine" not in said


def test_a_job_that_still_runs_stays_there_however_many_ended_since(site: Site, team: Team, member: User) -> None:
    yesterday = now() - timedelta(hours=20)
    make_job(team, member, site.gpu, state=State.RUNNING, name="long one", submitted_at=yesterday)
    for _ in range(25):
        make_job(team, member, site.gpu, state=State.SUCCEEDED, name="short one", ended_at=now())
    assert "long one" in words(as_person(member).get("/"))


def test_jobs_of_a_team_that_i_left_are_gone_from_it(site: Site, team: Team, member: User, lead: User) -> None:
    make_job(team, member, site.gpu, state=State.RUNNING, name="still running")
    services.remove_member(actor=lead, team=team, user=member)
    assert "still running" not in words(as_person(member).get("/"))


def test_the_fragment_holds_only_the_jobs(site: Site, team: Team, member: User) -> None:
    make_job(team, member, site.gpu, state=State.RUNNING, name="mine")
    part = html(as_person(member).get("/", headers={"HX-Request": "true"}))
    assert part.lstrip().startswith('<ul class="bt-rows" id="my-jobs">')


def test_set_up_ticks_itself(site: Site, team: Team, member: User) -> None:
    client = as_person(member)

    def done() -> int:
        return len(re.findall(r'aria-label="done"', html(client.get("/"))))

    before = done()
    services.issue_token(user=member, name="laptop", scope="read", lifetime=timedelta(days=1))
    make_job(team, member, site.gpu, state=State.FAILED, ended_at=now())
    assert done() == before + 2


@pytest.mark.parametrize("who", ["auditor", "admin_user"])
def test_the_sites_own_people_see_it_too(who: str, request: pytest.FixtureRequest, site: Site, team: Team) -> None:
    assert as_person(request.getfixturevalue(who)).get("/").status_code == 200


def test_the_number_of_queries_does_not_grow_with_jobs(site: Site, team: Team, member: User) -> None:
    client = as_person(member)
    make_job(team, member, site.gpu, state=State.RUNNING)
    first = len(queries(lambda: client.get("/")))
    for _ in range(8):
        make_job(team, member, site.gpu, state=State.RUNNING)
    assert len(queries(lambda: client.get("/"))) == first
    assert first <= 16
