"""Foreign and missing look the same everywhere (case 17)."""

from uuid import uuid4

import pytest
from django.test import Client

from portal.catalog.services import install_shipped
from portal.jobs.models import Job, State
from portal.teams import services
from portal.teams.models import Team, User
from tests.factories import Site, make_job, make_stream
from tests.web.pages import as_person, html

# Everything below a job that a browser can ask for; {job} and {stream} stand for ids.
PARTS = ["", "log/", "cost/", "events/", "manifest/", "log/{stream}/download/", "clone/"]
DEEDS = ["cancel/", "rerun/"]


@pytest.fixture
def job(site: Site, team: Team, member: User) -> Job:
    return make_job(team, member, site.gpu, state=State.RUNNING, name="the secret plan of vision")


def answers(client: Client, team: str, job_id: object, stream: object) -> list[tuple[str, int, str]]:
    found = []
    for part in PARTS:
        path = part.format(stream=stream)
        page = client.get(f"/teams/{team}/jobs/{job_id}/{path}")
        found.append((part, page.status_code, html(page)))
    for part in DEEDS:
        page = client.post(f"/teams/{team}/jobs/{job_id}/{part}")
        found.append((part, page.status_code, html(page)))
    return found


def test_case_17_a_foreign_job_answers_like_a_missing_one_at_every_address(job: Job, outsider: User) -> None:
    stream = make_stream(job)
    client = as_person(outsider)
    foreign = answers(client, "vision", job.pk, stream.pk)
    missing = answers(client, "vision", uuid4(), uuid4())
    nowhere = answers(client, "no-such-team", uuid4(), uuid4())
    assert foreign == missing == nowhere
    assert {status for _, status, _ in foreign} == {404}
    assert "secret plan" not in str(foreign)


def test_case_17_a_foreign_job_under_ones_own_team_is_missing_too(job: Job, outsider: User, member: User) -> None:
    stream = make_stream(job)
    foreign = answers(as_person(outsider), "language", job.pk, stream.pk)
    assert {status for _, status, _ in foreign} == {404}


def test_case_17_also_for_those_who_may_see_every_team(job: Job, other_team: Team, admin_user: User) -> None:
    """A job has one address; under another team it is not there, whoever asks."""
    assert {status for _, status, _ in answers(as_person(admin_user), "language", job.pk, uuid4())} == {404}
    assert as_person(admin_user).get(f"/teams/vision/jobs/{job.pk}/").status_code == 200


def test_case_17_a_stream_of_another_job_is_missing(site: Site, other_team: Team, job: Job, member: User) -> None:
    theirs = make_job(other_team, member, site.gpu)
    stream = make_stream(theirs)
    client = as_person(member)
    assert client.get(f"/teams/vision/jobs/{job.pk}/log/{stream.pk}/download/").status_code == 404


def test_case_17_access_ends_with_the_membership(job: Job, member: User, lead: User, team: Team) -> None:
    client = as_person(member)
    assert client.get(f"/teams/vision/jobs/{job.pk}/").status_code == 200
    services.remove_member(actor=lead, team=team, user=member)
    assert {status for _, status, _ in answers(client, "vision", job.pk, uuid4())} == {404}


def test_case_17_a_deactivated_person_sees_nothing(job: Job, member: User) -> None:
    client = as_person(member)
    User.objects.filter(pk=member.pk).update(is_active=False)
    assert client.get(f"/teams/vision/jobs/{job.pk}/").status_code in (302, 404)
    assert client.get("/teams/vision/jobs/").status_code in (302, 404)


def test_case_17_ids_that_are_none(job: Job, member: User) -> None:
    client = as_person(member)
    for wrong in ("1", "0", "-1", job.pk.hex[:-1], "%00", "..%2f..%2fetc", "a" * 400, "null"):
        assert client.get(f"/teams/vision/jobs/{wrong}/").status_code == 404, wrong


def test_case_17_a_clone_takes_nothing_from_a_foreign_job(site: Site, job: Job, outsider: User) -> None:
    install_shipped()
    job.values = {"script": "echo the password"}
    job.save()
    page = as_person(outsider).get("/teams/language/submit/script/", {"from": str(job.pk)})
    assert page.status_code == 200
    assert "secret plan" not in html(page)
    assert "echo the password" not in html(page)


def test_pages_of_a_team_that_is_not_ones_own_are_missing(site: Site, team: Team, outsider: User) -> None:
    client = as_person(outsider)
    for path in ("", "jobs/", "jobs/rows/", "submit/", "submit/script/", "costs/"):
        foreign, missing = client.get(f"/teams/vision/{path}"), client.get(f"/teams/nothing/{path}")
        assert (foreign.status_code, html(foreign)) == (404, html(missing)), path
