"""`POST /api/v1/jobs/`: what a script sends, and what it is told when something is off."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from django.db import connection

from portal.catalog import services as catalog
from portal.catalog.models import TemplateVersion
from portal.jobs.models import Job
from portal.teams.models import Team, User
from tests.api.conftest import Program

Submit = Callable[..., Any]


def errors(answer: Any) -> dict[str, str]:
    """Field -> message of a problem document."""
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    return {error["field"]: error["message"] for error in body["errors"]}


def test_a_script_is_all_that_the_script_template_needs(submit: Submit) -> None:
    answer = submit()
    assert answer.status_code == 201
    job = answer.json()
    assert job["state"] == "submitted"
    assert job["url"].endswith(f"/teams/vision/jobs/{job['id']}/")
    assert answer["Location"].endswith(f"/api/v1/jobs/{job['id']}/")
    assert Job.objects.get().submitted_by_name == "member"


def test_case_19_the_repeat_of_a_post_gets_the_first_answer(submit: Submit) -> None:
    first, second = (submit(headers={"Idempotency_Key": "one"}) for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    assert (first.status_code, second.status_code) == (201, 201)
    assert second["Idempotency-Replayed"] == "true"
    assert Job.objects.count() == 1


def test_case_19_the_same_key_with_another_body_is_refused(submit: Submit) -> None:
    submit(headers={"Idempotency_Key": "one"})
    other = submit(headers={"Idempotency_Key": "one"}, name="something else")
    assert other.status_code == 409
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "field", "word"),
    [
        ({"template": "nonsense"}, "template", "nonsense"),
        ({"version": 99}, "version", "99"),
        ({"team": "language"}, "team", "vision"),
        ({"team": "nowhere"}, "team", "vision"),
        ({"queue": "fast"}, "queue", "gpu"),
        ({"values": {}}, "values.script", ""),
        ({"values": {"script": 7}}, "values.script", ""),
        ({"values": {"script": "true", "scirpt": "true"}}, "values.scirpt", "script"),
        ({"values": {"script": "x" * 2_000_000}}, "values.script", "100,000"),
        ({"name": "x" * 300}, "name", "300"),
        ({"name": "a/b"}, "name", "/"),
        ({"name": "two\nlines"}, "name", ""),
        ({"queue": "gpu", "values": {"script": "true", "gpu": "h100"}}, "values.gpu", "flavor and a count"),
        ({"queue": "gpu", "values": {"script": "true", "gpu": {"flavor": "h100", "count": -1}}}, "values.gpu", "-1"),
    ],
)  # fmt: skip
def test_what_is_off_is_named_with_its_field(submit: Submit, fields: dict[str, Any], field: str, word: str) -> None:
    answer = submit(**fields)
    assert answer.status_code == 422
    found = errors(answer)
    assert field in found
    assert word in found[field]
    assert not Job.objects.exists()


@pytest.mark.parametrize("name", ["x", "a" * 63, "a" * 64, "llama 🦙 lr 2e-5", "-leading dash", "研究 1", ".hidden"])
def test_a_name_may_be_in_any_language(submit: Submit, name: str) -> None:
    assert submit(name=name).json()["name"] == name


def test_every_fault_is_told_at_once(submit: Submit) -> None:
    found = errors(submit(name="x" * 300, values={"nonsense": 1}))
    assert {"name", "values.script", "values.nonsense"} <= set(found)


def test_case_25_more_than_the_queue_can_ever_give_is_refused_with_both_numbers(program: Program) -> None:
    body = {"team": "vision", "template": "gpu-check", "values": {"gpu": {"flavor": "h100", "count": 6}}}
    found = errors(program.post("jobs/", body))
    message = next(message for field, message in found.items() if field.startswith("values."))
    assert "6" in message
    assert "4" in message


def test_a_retired_version_says_so(submit: Submit, admin_user: User) -> None:
    version = TemplateVersion.objects.get(template__slug="script")
    catalog.retire(actor=admin_user, version=version, message="Use the other one.")
    found = errors(submit(version=version.number))
    assert "Use the other one." in next(iter(found.values()))


def test_a_field_that_does_not_exist_is_named(submit: Submit) -> None:
    assert "priorty" in errors(submit(priorty="high"))


def test_a_field_whose_name_is_no_text_is_refused_like_any_other(program: Program) -> None:
    body = b'{"\\ud800": 1, "team": "vision", "template": "script", "values": {"script": "true"}}'
    answer = program.client.post("/api/v1/jobs/", body, content_type="application/json")
    assert answer.status_code == 422
    assert list(errors(answer)) == ["\ufffd"]
    assert not Job.objects.exists()


def test_of_many_long_unknown_fields_a_few_are_named_in_short(submit: Submit) -> None:
    answer = submit(**{f"{number:03}{'x' * 5000}": 1 for number in range(200)})
    assert answer.status_code == 422
    assert len(answer.content) < 20_000


@pytest.mark.parametrize("body", ["{", "[1,", '{"team": NaN}', '{"team": "a", "team": "b"}', "\xff"])
def test_json_that_is_not_json(program: Program, body: str) -> None:
    answer = program.client.post("/api/v1/jobs/", body.encode("latin-1"), content_type="application/json")
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


def test_what_is_no_json_by_its_own_word_is_told_to_be(program: Program) -> None:
    answer = program.client.post("/api/v1/jobs/", "team=vision", content_type="text/plain")
    assert answer.status_code == 415
    assert "Content-Type: application/json" in answer.json()["detail"]


@pytest.mark.parametrize("body", [[], "text", 7, None])
def test_json_that_is_no_object(program: Program, body: object) -> None:
    answer = program.client.post("/api/v1/jobs/", json.dumps(body).encode(), content_type="application/json")
    assert answer.status_code == 422


def test_a_body_of_five_mebibytes_is_refused_before_it_is_parsed(program: Program) -> None:
    answer = program.post("jobs/", {"team": "vision", "template": "script", "values": {"script": "x" * 5 * 2**20}})
    assert answer.status_code == 413


def test_a_token_that_may_only_read_submits_nothing(member: User, submit: Submit) -> None:
    reader = Program(member, scope="read")
    assert reader.get("jobs/").status_code == 200
    answer = reader.post("jobs/", {"team": "vision", "template": "script", "values": {"script": "true"}})
    assert answer.status_code == 403
    assert "read, submit and cancel" in answer.json()["detail"]


def test_an_auditor_sees_everything_and_submits_nothing(auditor: User, submit: Submit) -> None:
    job = submit().json()
    watcher = Program(auditor)
    assert watcher.get(f"jobs/{job['id']}/").status_code == 200
    body = {"team": "vision", "template": "script", "values": {"script": "true"}}
    assert watcher.post("jobs/", body).status_code == 403


def test_a_session_without_its_csrf_token_submits_nothing(program: Program, member: User) -> None:
    browser = Program(None)
    browser.client.force_login(member)
    answer = browser.post("jobs/", {"team": "vision", "template": "script", "values": {"script": "true"}})
    assert answer.status_code == 403
    assert not Job.objects.exists()


def test_a_closed_team_takes_no_jobs(submit: Submit, team: Team) -> None:
    Team.objects.update(closed_at="2026-01-01T00:00:00Z")
    assert submit().status_code in {403, 422}
    assert not Job.objects.exists()


def test_a_preview_shows_manifest_and_estimate_and_writes_nothing(program: Program) -> None:
    body = {"team": "vision", "template": "script", "values": {"script": "echo hi"}}
    answer = program.post("jobs/preview/", body)
    assert answer.status_code == 200
    assert answer.json()["manifests"][0]["kind"] == "Job"
    assert not Job.objects.exists()


@pytest.fixture
def busy_database(transactional_db: None) -> Iterator[None]:
    """Somebody else is writing all the time, and nobody waits for that as long as one would."""
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout=50")
        yield
        other.execute("ROLLBACK")
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout=20000")


def test_a_database_that_has_too_much_to_do_is_said_with_a_time_to_try_again(
    submit: Submit, busy_database: None
) -> None:
    answer = submit(headers={"Idempotency_Key": "one"})
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert answer.json()["detail"].startswith("The database does not answer now, or has too much to do.")
