"""The catalog and the form: from a template to a job."""

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from portal.catalog import services as catalog
from portal.catalog.models import Template, TemplateVersion, VersionState
from portal.catalog.services import install_shipped
from portal.jobs.models import Job
from portal.teams import services as teams
from portal.teams.models import Team, User
from tests.factories import Site, make_job, make_version
from tests.web.pages import as_person, elements, fields, html, words

SCRIPT = "/teams/vision/submit/script/"

# One parameter of every kind.
KINDS: dict[str, Any] = {
    "queue": "gpu",
    "sections": [{"title": "Program", "help": "What runs."}],
    "parameters": [
        {"name": "title", "kind": "text", "section": "Program", "max_length": 20},
        {"name": "script", "kind": "script", "section": "Program"},
        {"name": "epochs", "kind": "integer", "min": 1, "max": 100, "default": 10},
        {"name": "rate", "kind": "number", "min": 0, "max": 1, "default": 0.05},
        {"name": "verbose", "kind": "boolean"},
        {"name": "optimiser", "kind": "choice", "choices": ["adam", {"value": "sgd", "label": "Plain SGD"}]},
        {"name": "limit", "kind": "duration", "default": "1 h", "max": "2 d"},
        {"name": "memory", "kind": "memory", "default": "2 GiB"},
        {"name": "gpu", "kind": "gpu", "default": {"flavor": "", "count": 1}, "max": 8},
        {"name": "image", "kind": "image", "choices": ["busybox:1", "python:3"], "default": "python:3"},
        {"name": "env", "kind": "env"},
        {"name": "token", "kind": "secret", "variable": "HF_TOKEN"},
        {"name": "runs", "kind": "runs", "default": 2, "max": 9},
    ],
    "work": {
        "image": {"from": "image"},
        "command": ["/bin/sh", "-c", {"from": "script"}, {"from": "title"}, {"from": "optimiser"}],
        "args": [{"from": "epochs"}, {"from": "rate"}, {"if": "verbose", "then": ["-v"]}],
        "env": [{"from": "env"}],
        "memory": {"from": "memory"},
        "gpus": {"from": "gpu"},
        "runs": {"from": "runs"},
        "time_limit": {"from": "limit"},
    },
}
FILLED = {"title": "a title", "script": "echo hello", "optimiser": "sgd"}


@pytest.fixture
def client(site: Site, team: Team, member: User) -> Client:
    install_shipped()
    return as_person(member)


def filled(client: Client, address: str = SCRIPT, **values: str) -> dict[str, str]:
    """The form as a browser would send it, with some fields typed over."""
    return {**fields(client.get(address), "submit-form"), **values}


def only_job() -> Job:
    return Job.objects.get()


# --- the catalog -------------------------------------------------------------------------------------------------


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


# --- the happy way -----------------------------------------------------------------------------------------------


def test_a_script_becomes_a_job(client: Client, member: User) -> None:
    answer = client.post(SCRIPT, filled(client, script="echo hello", **{"job.name": "größer 🚀"}), follow=True)
    job = only_job()
    assert answer.redirect_chain[0][0] == f"/teams/vision/jobs/{job.pk}/"
    assert (job.name, job.submitted_by, job.values["script"]) == ("größer 🚀", member, "echo hello")
    assert "“größer 🚀” is sent." in words(answer)


def test_a_job_without_a_name_is_called_like_its_template(client: Client) -> None:
    client.post(SCRIPT, filled(client, script="echo"))
    assert only_job().name == "Script"


def test_every_kind_of_field_is_there_and_arrives_as_its_type(client: Client) -> None:
    make_version("kinds", KINDS)
    address = "/teams/vision/submit/kinds/"
    sent = filled(
        client,
        address,
        **FILLED,
        verbose="on",
        limit="90 min",
        memory="512 MiB",
        env="A=1\r\nB==x y=$\r\nC=",
        token="hunter2",
        rate="1e-3",
        image="busybox:1",
        **{"gpu.count": "2", "gpu.flavor": "h100"},
    )
    assert sent["epochs"] == "10"
    answer = client.post(address, sent)
    assert answer.status_code == 302, words(answer)
    assert only_job().values == {
        "title": "a title",
        "script": "echo hello",
        "epochs": 10,
        "rate": 0.001,
        "verbose": True,
        "optimiser": "sgd",
        "limit": 5400,
        "memory": 512,
        "gpu": {"flavor": "h100", "count": 2},
        "image": "busybox:1",
        "env": {"A": "1", "B": "=x y=$", "C": ""},
        "runs": 2,
    }


def test_bytes_of_a_script_and_of_variables_are_kept(client: Client) -> None:
    script = 'printf "%s\\n" "a=b"\r\n\tprintf \'$HOME\' # tab, quotes, \\ and "dollar"\r\n\r\n  '
    client.post(SCRIPT, filled(client, script=script, env="A= leading and trailing \r\nB=\"quoted\" 'x' \\n\t."))
    work = only_job().work
    assert work["command"][2] == script.replace("\r\n", "\n")
    assert dict(work["env"]) == {"A": " leading and trailing ", "B": "\"quoted\" 'x' \\n\t."}


def test_a_script_may_begin_with_empty_lines_and_come_back_with_them(client: Client) -> None:
    script = "\n\n  echo hello\n"
    client.post(SCRIPT, filled(client, script=script))
    assert only_job().work["command"][2] == script
    assert filled(client, f"{SCRIPT}?from={only_job().pk}")["script"] == script


# --- once only ---------------------------------------------------------------------------------------------------


def test_case_19_a_double_click_is_one_job(client: Client) -> None:
    form = filled(client, script="echo")
    first, second = client.post(SCRIPT, form), client.post(SCRIPT, form)
    assert Job.objects.count() == 1
    assert first.headers["Location"] == second.headers["Location"] == f"/teams/vision/jobs/{only_job().pk}/"


def test_case_19_each_form_is_its_own_wish(client: Client) -> None:
    client.post(SCRIPT, filled(client, script="echo"))
    client.post(SCRIPT, filled(client, script="echo"))
    assert Job.objects.count() == 2


def test_case_19_the_same_form_with_another_body_is_asked_about(client: Client) -> None:
    """After Back: what is changed and sent again is a new wish, but never by accident."""
    form = filled(client, script="echo one")
    client.post(SCRIPT, form)
    answer = client.post(SCRIPT, {**form, "script": "echo two"})
    assert answer.status_code == 409
    assert "This form was sent already and has become a job." in words(answer)
    assert Job.objects.count() == 1
    again = fields(answer, "submit-form")
    assert (again["script"], again["job.key"] != form["job.key"]) == ("echo two", True)
    assert client.post(SCRIPT, again).status_code == 302
    assert Job.objects.count() == 2


def test_case_19_the_same_key_of_another_person_is_another_job(client: Client, lead: User) -> None:
    form = filled(client, script="echo")
    client.post(SCRIPT, form)
    as_person(lead).post(SCRIPT, form)
    assert Job.objects.count() == 2


def test_case_19_a_key_that_is_none_of_ours_is_not_kept(client: Client) -> None:
    client.post(SCRIPT, filled(client, script="echo", **{"job.key": "x" * 500}))
    assert only_job().idempotency_key != "x" * 500


# --- what goes wrong ---------------------------------------------------------------------------------------------


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


# --- clone -------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("source", ["", "x", "0", "%00", str(uuid4())])
def test_a_clone_of_nothing_is_the_empty_form(client: Client, source: str) -> None:
    page = client.get(SCRIPT, {"from": source})
    assert page.status_code == 200
    assert fields(page, "submit-form")["script"] == ""


# --- drafts and versions -----------------------------------------------------------------------------------------


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
