"""The catalog: which templates and versions can be submitted."""

import pytest
from django.test import Client

from portal.catalog import services as catalog
from portal.catalog.models import TemplateVersion, VersionState
from portal.catalog.services import install_shipped
from portal.jobs.models import Job
from portal.teams.models import Team, User
from tests.factories import Site, make_version
from tests.web.forms import FILLED, KINDS, SCRIPT, filled
from tests.web.pages import as_person, elements, words


@pytest.fixture
def client(site: Site, team: Team, member: User) -> Client:
    install_shipped()
    return as_person(member)


def only_job() -> Job:
    return Job.objects.get()


def test_the_catalog_shows_each_template_once_with_its_newest_version(client: Client) -> None:
    page = client.get("/teams/vision/submit/")
    links = [a["href"] for a in elements(page, "a") if a.get("href", "").startswith("/teams/vision/submit/")]
    for slug in ("script", "train-small-model", "gpu-check", "data-preparation", "array"):
        assert links.count(f"/teams/vision/submit/{slug}/") == 1


def test_a_deprecated_template_says_what_to_take_instead(client: Client) -> None:
    version = TemplateVersion.objects.get(template__slug="array")
    catalog.deprecate(actor=None, version=version, message="Take Script instead.")
    assert "deprecated Take Script instead." in words(client.get("/teams/vision/submit/"))
    assert "Version 1 is deprecated. Take Script instead." in words(client.get("/teams/vision/submit/array/"))


def test_an_empty_catalog_says_who_fills_it(site: Site, team: Team, member: User) -> None:
    assert "No template is published yet" in words(as_person(member).get("/teams/vision/submit/"))


@pytest.mark.parametrize("address", ["/teams/vision/submit/nothing/", f"{SCRIPT}?version=77", f"{SCRIPT}?version=x"])
def test_a_template_that_is_not_there_leads_back_to_the_catalog(client: Client, address: str) -> None:
    page = client.get(address)
    assert page.status_code == 404
    assert "This template cannot be used" in words(page)
    assert "/teams/vision/submit/" in [a.get("href") for a in elements(page, "a")]


def test_a_retired_template_gives_its_message(client: Client) -> None:
    version = TemplateVersion.objects.get(template__slug="array")
    catalog.retire(actor=None, version=version, message="It filled the disks.")
    page = client.get("/teams/vision/submit/array/")
    assert page.status_code == 404
    assert "It filled the disks." in words(page)


def test_the_browser_learns_which_forms_became_jobs(client: Client) -> None:
    form = filled(client, script="echo")
    client.post(SCRIPT, form)
    assert client.cookies["bt_sent"].value == form["job.key"]
    second = filled(client, script="echo")
    client.post(SCRIPT, second)
    assert client.cookies["bt_sent"].value == f"{second['job.key']}.{form['job.key']}"


def test_a_form_goes_to_the_version_it_was_opened_with(client: Client) -> None:
    make_version("kinds", KINDS)
    form = filled(client, "/teams/vision/submit/kinds/", **FILLED)
    newer = make_version("kinds", KINDS)
    client.post("/teams/vision/submit/kinds/", form)
    assert only_job().template_version.number == newer.number - 1


def test_a_draft_version_is_not_for_submitting(client: Client) -> None:
    template = make_version("kinds", KINDS).template
    TemplateVersion.objects.create(template=template, number=2, state=VersionState.DRAFT, definition=KINDS)
    assert client.get("/teams/vision/submit/kinds/?version=2").status_code == 404
