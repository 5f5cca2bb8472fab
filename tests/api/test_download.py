"""A log by API as a file: what proves it, and what is said of one that is damaged."""

import base64
import hashlib

import pytest

from portal.jobs.models import Job, State
from portal.logs import services
from portal.logs.models import Stream
from portal.teams.models import Team, User
from tests import factories
from tests.api.conftest import Program
from tests.logs.stored import damage, sealed_lines, store_lines, training_lines
from tests.web.test_job_page_log import body


@pytest.fixture
def stream(team: Team, member: User, templates: factories.Site) -> Stream:
    job = factories.make_job(team, member, templates.cpu, state=State.RUNNING)
    return factories.make_stream(job)


def test_a_sealed_log_comes_with_its_length_and_its_digest(program: Program, stream: Stream) -> None:
    text = sealed_lines(stream, training_lines(5000))
    answer = program.get(f"streams/{stream.pk}/download/")
    got = body(answer)
    assert got == text
    assert int(answer["Content-Length"]) == len(got)
    name, _, value = answer["Repr-Digest"].partition("=")
    assert name == "sha-256"
    assert value[0] == value[-1] == ":"
    assert base64.b64decode(value.strip(":")) == hashlib.sha256(got).digest()
    assert hashlib.sha256(got).hexdigest() == program.get(f"streams/{stream.pk}/").json()["sha256"]
    assert "no-transform" in answer["Cache-Control"]


def test_a_complete_log_has_a_length_and_no_digest_before_it_is_sealed(program: Program, stream: Stream) -> None:
    text = store_lines(stream, training_lines(10))
    services.complete(stream_id=stream.pk)
    answer = program.get(f"streams/{stream.pk}/download/")
    assert answer["Content-Length"] == str(len(text))
    assert "Repr-Digest" not in answer
    assert body(answer) == text


def test_a_log_that_grows_has_neither(program: Program, stream: Stream) -> None:
    store_lines(stream, training_lines(10))
    answer = program.get(f"streams/{stream.pk}/download/")
    assert "Content-Length" not in answer
    assert "Repr-Digest" not in answer


def test_an_empty_log_is_proved_too(program: Program, stream: Stream) -> None:
    services.complete(stream_id=stream.pk)
    services.seal_stream(stream_id=stream.pk)
    answer = program.get(f"streams/{stream.pk}/download/")
    assert (body(answer), answer["Content-Length"]) == (b"", "0")
    assert answer["Repr-Digest"] == f"sha-256=:{base64.b64encode(hashlib.sha256().digest()).decode()}:"


@pytest.mark.parametrize("what", ["lines/?from=1", "download/", "search/?q=loss"])
def test_a_damaged_log_is_a_problem_with_a_name(program: Program, stream: Stream, what: str) -> None:
    sealed_lines(stream, training_lines(1000))
    damage(stream)
    answer = program.get(f"streams/{stream.pk}/{what}")
    assert (answer.status_code, answer["Content-Type"]) == (500, "application/problem+json")
    assert answer.json() == {
        "type": "about:blank",
        "title": "Damaged",
        "status": 500,
        "code": "damaged",
        "detail": "This log's stored copy is damaged; an administrator can see which with `manage.py check_logs`.",
    }


def test_so_is_one_among_several(program: Program, stream: Stream) -> None:
    sealed_lines(stream, training_lines(1000))
    damage(stream)
    assert Job.objects.count() == 1
    answer = program.get(f"jobs/{stream.job_id}/lines/?limit=10")
    assert (answer.status_code, answer.json()["code"]) == (500, "damaged")
