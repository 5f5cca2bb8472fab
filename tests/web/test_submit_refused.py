"""What cannot be submitted is said at its field, and what was typed stays."""

import pytest
from django.test import Client

from portal.catalog import services as catalog
from portal.catalog.models import Template, TemplateVersion
from portal.catalog.services import install_shipped
from portal.jobs.models import Job
from portal.teams import services as teams
from portal.teams.models import Team, User
from tests.factories import Site, make_version
from tests.web.forms import FILLED, KINDS, SCRIPT, filled
from tests.web.pages import as_person, elements, fields, html, words


@pytest.fixture
def client(site: Site, team: Team, member: User) -> Client:
    install_shipped()
    return as_person(member)


def only_job() -> Job:
    return Job.objects.get()


def test_errors_stand_at_their_fields_and_what_was_typed_stays(client: Client) -> None:
    make_version("kinds", KINDS)
    address = "/teams/vision/submit/kinds/"
    typed = {**FILLED, "epochs": "many", "rate": "7", "limit": "for ever", "memory": "lots", "gpu.count": "99"}
    typed |= {"optimiser": "nope", "title": "x" * 50, "env": "no equals sign", "runs": "0", "job.name": "a/b"}
    answer = client.post(address, filled(client, address, **typed, token="hunter2"))

    assert answer.status_code == 422
    assert not Job.objects.exists()
    page = html(answer)
    wrong = {
        e["name"] for tag in ("input", "select", "textarea") for e in elements(answer, tag) if e.get("aria-invalid")
    }
    assert wrong == {
        *("job.name", "title", "epochs", "rate", "optimiser", "limit", "memory", "gpu.count", "env", "runs"),
    }
    assert "10 fields need a change" in words(answer)
    assert 'href="#f-job.name"' in page
    kept = fields(answer, "submit-form")
    assert {name: kept[name] for name in typed if name != "optimiser"} == {
        name: value for name, value in typed.items() if name != "optimiser"
    }


def test_each_error_is_tied_to_its_field_for_those_who_listen(client: Client) -> None:
    answer = client.post(SCRIPT, filled(client, script="", memory="lots"))
    page = html(answer)
    for name in ("script", "memory"):
        assert f'id="f-{name}_error"' in page
        field = next(e for tag in ("input", "textarea") for e in elements(answer, tag) if e.get("name") == name)
        assert f"f-{name}_error" in field["aria-describedby"]


def test_a_secret_never_comes_back(client: Client) -> None:
    answer = client.post(SCRIPT, filled(client, script="", secret="hunter2"))
    assert answer.status_code == 422
    assert "hunter2" not in html(answer)
    assert "Secrets are not kept in the page: type them again." in words(answer)


def test_a_secret_is_nowhere_to_be_read_afterwards(client: Client, member: User) -> None:
    client.post(SCRIPT, filled(client, script="echo", secret="hunter2", secret_name="HF_TOKEN"))
    job = only_job()
    assert job.secrets.get().name == "HF_TOKEN"
    for address in (
        f"/teams/vision/jobs/{job.pk}/",
        f"/teams/vision/jobs/{job.pk}/manifest/",
        f"/teams/vision/jobs/{job.pk}/events/",
        f"{SCRIPT}?from={job.pk}",
        "/teams/vision/jobs/",
        "/",
    ):
        assert "hunter2" not in html(client.get(address)), address


def test_a_script_of_two_megabytes_is_answered_at_its_field(client: Client) -> None:
    form = filled(client, script="x" * 2_000_000)
    answer = client.post(SCRIPT, form)
    assert answer.status_code == 422
    assert "It has 2,000,000 bytes; 100,000 is the most" in words(answer)
    assert 'id="f-script_error"' in html(answer)
    assert not Job.objects.exists()


@pytest.mark.parametrize("name", ["a/b", "a\nb", "a\tb", "x" * 201, "x" * 300, "a\x00b", "\u202eevil"])
def test_a_name_that_cannot_be_is_said_at_the_name(client: Client, name: str) -> None:
    answer = client.post(SCRIPT, filled(client, script="echo", **{"job.name": name}))
    assert answer.status_code == 422
    assert 'id="f-job.name_error"' in html(answer)


@pytest.mark.parametrize(
    "name", ["x" * 63, "x" * 64, "x" * 200, "-dash", "größer 🚀", "名前", "a b.c_d", "50 % of: it"]
)
def test_a_name_in_any_language_is_fine(client: Client, name: str) -> None:
    assert client.post(SCRIPT, filled(client, script="echo", **{"job.name": name})).status_code == 302
    assert only_job().name == name


def test_more_than_the_queue_can_ever_give_is_refused_with_both_numbers(client: Client) -> None:
    answer = client.post(SCRIPT, filled(client, script="echo", **{"gpu.count": "5"}))
    assert answer.status_code == 422
    said = words(answer)
    assert "5 GPUs" in said
    assert "4" in said[said.index("5 GPUs") :]
    assert "Can never fit" in said


def test_a_closed_team_submits_nothing(client: Client, team: Team, admin_user: User) -> None:
    form = filled(client, script="echo")
    teams.close_team(actor=admin_user, team=team)
    answer = client.post(SCRIPT, form)
    assert answer.status_code == 422
    assert "closed" in words(answer)
    assert not Job.objects.exists()


def test_a_version_that_was_retired_meanwhile_says_so(client: Client) -> None:
    form = filled(client, script="echo")
    catalog.retire(actor=None, version=TemplateVersion.objects.get(template__slug="script"), message="Use Array.")
    answer = client.post(SCRIPT, form)
    assert answer.status_code == 404
    assert "Use Array." in words(answer)
    assert not Job.objects.exists()


def test_markup_in_what_was_typed_is_text(client: Client) -> None:
    evil = '"><img src=x onerror=alert(1)></textarea><script>alert(1)</script>'
    answer = client.post(
        SCRIPT, filled(client, script=evil, memory=evil, cores=evil, **{"job.name": evil, "gpu.count": evil})
    )
    page = html(answer)
    assert answer.status_code == 422
    assert "<img src=x" not in page
    assert "<script>alert" not in page
    assert fields(answer, "submit-form")["script"] == evil


def test_markup_in_a_definition_is_text(client: Client) -> None:
    evil = "<img src=x onerror=alert(1)>"
    definition = {
        "sections": [{"title": evil, "help": evil}],
        "parameters": [
            {"name": "a", "kind": "text", "label": evil, "help": evil, "placeholder": evil, "section": evil},
            {"name": "b", "kind": "choice", "choices": [{"value": evil, "label": evil}]},
        ],
        "work": {"image": "x", "command": [{"from": "a"}, {"from": "b"}]},
    }
    version = make_version("evil", definition)
    Template.objects.filter(pk=version.template_id).update(title=evil, summary=evil)
    for address in ("/teams/vision/submit/evil/", "/teams/vision/submit/", "/"):
        assert "<img" not in html(client.get(address)), address


def test_every_shipped_template_opens_and_sends_as_it_is(client: Client) -> None:
    for slug in Template.objects.values_list("slug", flat=True):
        address = f"/teams/vision/submit/{slug}/"
        form = filled(client, address)
        if slug == "script":
            form["script"] = "echo"
        answer = client.post(address, form)
        assert answer.status_code == 302, (slug, words(answer))
