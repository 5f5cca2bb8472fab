"""What went wrong is said on a page of its own, with what to do."""

import pytest
from django.test import Client, RequestFactory, override_settings

from portal.teams.models import Team, User
from portal.web import errors
from tests.factories import Site
from tests.web.pages import as_person, html, words


def test_a_page_that_is_not_there(site: Site, member: User) -> None:
    answer = as_person(member).get("/no/such/page/")
    assert answer.status_code == 404
    assert "There is no such page, or it is not open to you." in words(answer)
    assert "no/such/page" not in html(answer)


def test_a_form_without_its_token_changes_nothing(site: Site, team: Team, lead: User, outsider: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(lead)
    for address, form in (
        ("/teams/vision/people/add/", {"username": "outsider", "role": "member"}),
        ("/teams/vision/submit/script/", {"script": "echo"}),
        ("/teams/vision/submit/script/estimate/", {"script": "echo"}),
        ("/accounts/tokens/", {"name": "x", "scope": "read", "days": "7"}),
        ("/accounts/preferences/", {"theme": "dark"}),
    ):
        answer = client.post(address, form)
        assert answer.status_code == 403, address
        assert "This form is out of date" in words(answer), address
    assert team.memberships.count() == 1


def test_the_page_for_a_fault_of_ours_needs_nothing(rf: RequestFactory) -> None:
    answer = errors.broken(rf.get("/"))
    assert answer.status_code == 500
    assert "The fault is written down on the server." in words(answer)


def test_more_than_the_server_reads_is_said_to_be_too_large(site: Site, team: Team, member: User) -> None:
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=10_000):
        answer = as_person(member).post("/teams/vision/submit/script/", {"script": "x" * 20_000})
    assert answer.status_code == 413
    assert "larger than 4 MiB" in words(answer)


def test_a_fragment_gets_words_and_no_page(site: Site, member: User) -> None:
    answer = as_person(member).get("/teams/none/jobs/", headers={"HX-Request": "true"})
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_a_session_that_ended_leads_to_sign_in_and_back(site: Site) -> None:
    page = Client().get("/teams/vision/jobs/?state=failed")
    assert page.status_code == 302
    assert page.headers["Location"].endswith("?next=%2Fteams%2Fvision%2Fjobs%2F%3Fstate%3Dfailed")
    fragment = Client().get("/teams/vision/jobs/rows/", headers={"HX-Request": "true"})
    assert fragment.status_code == 401


@pytest.mark.django_db
def test_a_form_sent_too_late_leads_back_to_its_page() -> None:
    here = "http://testserver/teams/vision/submit/script/"
    answer = Client().post("/teams/vision/submit/script/estimate/", headers={"Referer": here})
    assert "next=http%3A%2F%2Ftestserver%2Fteams%2Fvision%2Fsubmit%2Fscript%2F" in answer.headers["Location"]
    strange = Client().post("/accounts/preferences/", headers={"Referer": "https://evil.example/"})
    assert strange.headers["Location"].endswith("?next=%2F")


def test_every_page_forbids_inline_script_and_style(site: Site, team: Team, member: User) -> None:
    client = as_person(member)
    for address in ("/", "/queues/", "/teams/vision/", "/teams/vision/jobs/", "/teams/vision/costs/"):
        answer = client.get(address)
        policy = answer.headers["Content-Security-Policy"]
        assert "unsafe-inline" not in policy
        assert "default-src 'self'" in policy
        page = html(answer)
        assert " style=" not in page, address
        assert "<script>" not in page, address
        assert " onclick=" not in page, address
