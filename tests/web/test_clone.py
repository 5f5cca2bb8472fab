"""A form that is filled with what another job had."""

import pytest
from django.test import Client

from portal.catalog.services import install_shipped
from portal.jobs.models import Job
from portal.teams.models import Team, User
from tests.factories import Site, make_job, make_version
from tests.web.forms import FILLED, KINDS, SCRIPT, filled
from tests.web.pages import as_person, fields, words


@pytest.fixture
def client(site: Site, team: Team, member: User) -> Client:
    install_shipped()
    return as_person(member)


def only_job() -> Job:
    return Job.objects.get()


def test_a_clone_has_the_values_but_not_the_secrets(client: Client) -> None:
    client.post(SCRIPT, filled(client, script="echo\n", env="A=1", secret="x", memory="3 GiB", **{"job.name": "one"}))
    job = only_job()
    form = filled(client, f"{SCRIPT}?from={job.pk}")
    assert form["script"] == "echo\n"
    assert form["env"] == "A=1"
    assert form["memory"] == "3 GiB"
    assert form["secret"] == ""
    assert form["job.name"] == "one"
    assert form["job.from"] == str(job.pk)


def test_a_clone_of_an_older_version_opens_the_newest_and_says_so(
    client: Client, site: Site, team: Team, member: User
) -> None:
    old = make_version("kinds", KINDS)
    values = {**FILLED, "epochs": 3, "gone": 1, "memory": "not a number", "limit": 60}
    job = make_job(team, member, site.gpu, name="old one", template_version=old, values=values)
    make_version("kinds", KINDS)
    page = client.get("/teams/vision/submit/kinds/", {"from": str(job.pk)})
    assert "version 2" in words(page)
    assert "It ran with version 1." in words(page)
    form = fields(page, "submit-form")
    assert (form["epochs"], form["limit"]) == ("3", "1 min")
    pinned = client.get("/teams/vision/submit/kinds/", {"from": str(job.pk), "version": "1"})
    assert "There is a newer version 2." in words(pinned)
    assert fields(pinned, "submit-form")["job.version"] == "1"


@pytest.mark.parametrize("source", ["", "x", "0", "%00", "00000000-0000-4000-8000-000000000000"])
def test_a_clone_of_nothing_is_the_empty_form(client: Client, source: str) -> None:
    page = client.get(SCRIPT, {"from": source})
    assert page.status_code == 200
    assert fields(page, "submit-form")["script"] == ""
