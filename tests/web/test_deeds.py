"""Cancel, run again and clone, as a browser asks for them."""

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from portal.catalog.services import install_shipped
from portal.jobs import services
from portal.jobs.models import Job, State
from portal.jobs.specs import JobRequest
from portal.teams.models import Membership, Team, User
from tests.factories import Site, make_user
from tests.web.pages import as_person, fields, words


@pytest.fixture
def job(site: Site, team: Team, member: User) -> Job:
    install_shipped()
    values = {"script": "echo hello", "secret": ""}
    request = JobRequest(team=team, user=member, template="script", values={"script": values["script"]}, name="mine")
    return services.submit(request).job


def address(job: Job, deed: str) -> str:
    return f"/teams/vision/jobs/{job.pk}/{deed}/"


def test_the_owner_cancels_and_is_back_on_the_job(job: Job, member: User) -> None:
    answer = as_person(member).post(address(job, "cancel"))
    assert answer.headers["Location"] == f"/teams/vision/jobs/{job.pk}/"
    job.refresh_from_db()
    assert job.state == State.CANCELLED
    assert job.cancel_requested_by_name == "member"


def test_a_job_that_is_over_says_so(job: Job, member: User) -> None:
    Job.objects.update(state=State.SUCCEEDED)
    job.attempts.update(state=State.SUCCEEDED, due_at=None)
    answer = as_person(member).post(address(job, "cancel"), follow=True)
    assert "It is over already" in words(answer)
    job.refresh_from_db()
    assert job.state == State.SUCCEEDED


def test_a_lead_cancels_anybodys(job: Job, lead: User) -> None:
    as_person(lead).post(address(job, "cancel"))
    job.refresh_from_db()
    assert job.state == State.CANCELLED


def test_a_member_does_not_cancel_the_job_of_another(job: Job, site: Site, team: Team) -> None:
    other = make_user("other")
    Membership.objects.create(team=team, user=other)
    answer = as_person(other).post(address(job, "cancel"))
    assert answer.status_code == 403
    assert "A lead of the team can cancel it." in words(answer)
    job.refresh_from_db()
    assert job.state == State.SUBMITTED


def test_deeds_take_no_get(job: Job, member: User) -> None:
    client = as_person(member)
    assert client.get(address(job, "cancel")).status_code == 405
    assert client.get(address(job, "rerun")).status_code == 405
    job.refresh_from_db()
    assert job.state == State.SUBMITTED


def test_running_again_makes_another_job(job: Job, member: User) -> None:
    answer = as_person(member).post(address(job, "rerun"), {"key": "once"}, follow=True)
    again = Job.objects.exclude(pk=job.pk).get()
    assert answer.redirect_chain[0][0] == f"/teams/vision/jobs/{again.pk}/"
    assert (again.rerun_of_id, again.values) == (job.pk, job.values)
    assert "“mine” is sent again." in words(answer)


def test_running_again_twice_with_one_key_is_one_job(job: Job, member: User) -> None:
    client = as_person(member)
    answers = [client.post(address(job, "rerun"), {"key": "once"}) for _ in range(2)]
    assert Job.objects.count() == 2
    assert answers[0].headers["Location"] == answers[1].headers["Location"]


def test_a_job_with_a_secret_leads_to_its_form(
    site: Site, team: Team, member: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    install_shipped()
    values = {"script": "echo", "secret": "hunter2"}
    job = services.submit(JobRequest(team=team, user=member, template="script", values=values)).job
    answer = as_person(member).post(address(job, "rerun"), follow=True)
    assert answer.redirect_chain[-1][0] == f"/teams/vision/submit/script/?from={job.pk}"
    assert "SECRET" in words(answer)
    assert "hunter2" not in answer.content.decode()
    assert fields(answer, "submit-form")["secret"] == ""


def test_an_auditor_runs_nothing(job: Job, auditor: User) -> None:
    client = as_person(auditor)
    for deed in ("rerun", "cancel"):
        assert client.post(address(job, deed)).status_code == 403
    assert client.get(address(job, "clone")).status_code == 403
    assert Job.objects.count() == 1


def test_clone_opens_the_filled_form(job: Job, member: User) -> None:
    page = as_person(member).get(address(job, "clone"), follow=True)
    sent = fields(page, "submit-form")
    assert sent["script"] == "echo hello"
    assert sent["job.name"] == "mine"
    assert "Values taken from mine" in words(page)
