"""From a filled form to a job, once."""

import pytest
from django.test import Client

from portal.catalog.services import install_shipped
from portal.jobs.models import Job
from portal.teams.models import Team, User
from tests.factories import Site, make_version
from tests.web.forms import FILLED, KINDS, SCRIPT, filled
from tests.web.pages import as_person, fields, words


@pytest.fixture
def client(site: Site, team: Team, member: User) -> Client:
    install_shipped()
    return as_person(member)


def only_job() -> Job:
    return Job.objects.get()


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
