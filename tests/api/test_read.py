"""Reading through the API: the same gate in front of everything that carries job data."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core.clock import now
from portal.jobs.models import Job, State
from portal.logs import services as logs
from portal.logs.specs import Record
from portal.teams import services as teams
from portal.teams.models import Team, User
from portal.usage.models import Interval
from tests import factories
from tests.api.conftest import Program

Submit = Callable[..., Any]
PARTS = ["", "events/", "attempts/", "streams/"]


@pytest.fixture
def job(site: factories.Site, team: Team, member: User) -> Job:
    return factories.make_job(team, member, site.cpu)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("whose", ["foreign", "missing", "malformed"])
def test_case_17_foreign_missing_and_malformed_answer_alike(
    outsider: User, job: Job, templates: factories.Site, part: str, whose: str
) -> None:
    named = {"foreign": str(job.id), "missing": str(uuid4()), "malformed": "1"}[whose]
    answer = Program(outsider).get(f"jobs/{named}/{part}")
    assert answer.status_code == 404
    assert answer.json()["detail"] == "This does not exist, or it is not open to you."


@pytest.mark.parametrize("part", ["", "lines/", "download/"])
def test_case_17_the_log_has_the_same_gate_as_the_job(outsider: User, member: User, job: Job, part: str) -> None:
    stream = factories.make_stream(job)
    assert Program(outsider).get(f"streams/{stream.pk}/{part}").status_code == 404
    assert Program(member).get(f"streams/{stream.pk}/{part}").status_code == 200


@pytest.mark.parametrize("deed", ["cancel/", "rerun/"])
def test_case_17_nobody_acts_on_a_foreign_job(outsider: User, job: Job, deed: str) -> None:
    assert Program(outsider).post(f"jobs/{job.id}/{deed}").status_code == 404
    job.refresh_from_db()
    assert job.state == "submitted"


@pytest.mark.parametrize("rows", ["usage/", "charges/"])
def test_case_17_usage_and_charges_of_a_foreign_job_are_missing(outsider: User, job: Job, rows: str) -> None:
    assert Program(outsider).get(f"{rows}?job={job.id}").status_code == 404
    assert Program(outsider).get(rows).json()["results"] == []


def test_leaving_the_team_ends_access_at_once(member: User, lead: User, team: Team, job: Job) -> None:
    program = Program(member)
    assert program.get(f"jobs/{job.id}/").status_code == 200
    teams.remove_member(actor=lead, team=team, user=member)
    assert program.get(f"jobs/{job.id}/").status_code == 404


def test_without_a_token_the_answer_says_how_to_sign_in() -> None:
    answer = Program(None).get("jobs/")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("text", ["nonsense", "", "a b", "é"])
def test_a_token_that_is_none(db: None, text: str) -> None:
    program = Program(None)
    program.headers["Authorization"] = f"Bearer {text}"
    assert program.get("jobs/").status_code == 401


def test_an_expired_token_says_what_to_do(member: User) -> None:
    program = Program(member)
    with time_machine.travel(timedelta(days=2)):
        answer = program.get("jobs/")
    assert answer.status_code == 401
    assert "expired" in answer.json()["detail"]


def test_lines_are_numbered_from_one_and_the_range_says_where_to_go_on(member: User, job: Job) -> None:
    stream = factories.make_stream(job)
    records = [Record(1_700_000_000_123_456_789 + n, f"line {n}\n".encode()) for n in range(1, 11)]
    logs.append(stream_id=stream.pk, first_line=1, records=records)
    program = Program(member)
    page = program.get(f"streams/{stream.pk}/lines/?from=3&limit=2").json()
    assert page["lines"] == [
        {"n": 3, "t": "2023-11-14T22:13:20.123456792Z", "text": "line 3"},
        {"n": 4, "t": "2023-11-14T22:13:20.123456793Z", "text": "line 4"},
    ]
    assert (page["from"], page["to"], page["complete"]) == (3, 5, False)
    logs.complete(stream_id=stream.pk)
    assert program.get(f"streams/{stream.pk}/lines/?from=5").json()["complete"] is True


def test_case_47_screen_api_and_download_hold_the_same_lines(member: User, job: Job) -> None:
    stream = factories.make_stream(job)
    texts = [b"plain\n", b"\n", b"\x1b[31mred\x1b[0m\n", b"caf\xc3\xa9\r 50%\r100%\n", b"\x00 nul\n", b"tail"]
    logs.append(stream_id=stream.pk, first_line=1, records=[Record(n, text) for n, text in enumerate(texts, 1)])
    program = Program(member)
    download = b"".join(program.get(f"streams/{stream.pk}/download/"))
    lines = program.get(f"streams/{stream.pk}/lines/").json()["lines"]
    assert download == b"".join(texts)
    assert [line["text"] for line in lines] == [text.decode().removesuffix("\n") for text in texts]


@pytest.mark.parametrize(
    "query",
    ["from=0", "from=-1", "from=x", f"from={10**18}", "limit=0", "limit=5001", "from=1e3", "limit=" + "9" * 30],
)
def test_a_range_that_is_none_names_its_field(member: User, job: Job, query: str) -> None:
    stream = factories.make_stream(job)
    answer = Program(member).get(f"streams/{stream.pk}/lines/?{query}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == query.split("=", maxsplit=1)[0]


@pytest.mark.parametrize("rows", ["usage", "charges"])
@pytest.mark.parametrize(
    "query", ["cursor=x", "cursor=cD0x", "cursor=cD0lMDA=", "cursor=cD0wMDAxLTAxLTAxIDAwOjAwKzIzOjU5",
              "cursor=cD0yMDI2LTEzLTAxIDAwOjAw", "cursor=cD0yMDI2LTEyLTAxIDAwOjAw", "limit=x", "limit=0", "limit=1001"],
)  # fmt: skip
def test_a_page_of_records_that_is_none_names_its_field(member: User, job: Job, rows: str, query: str) -> None:
    answer = Program(member).get(f"{rows}/?{query}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == query.split("=", maxsplit=1)[0]


def test_records_are_read_page_by_page(member: User, job: Job, team: Team) -> None:
    start = now().replace(microsecond=0)
    for number in range(3):
        Interval.objects.create(
            job=job, team=team, attempt_number=1, pod_uid=f"p{number}", pod_name="p", resource="cpu", units=2,
            started_at=start + timedelta(seconds=number), ended_at=None, seen_at=start,
        )  # fmt: skip
    program, address, seen = Program(member), "usage/?limit=1", []
    while address:
        page = program.get(address).json()
        seen += [row["pod_uid"] for row in page["results"]]
        address = (page["next"] or "").partition("/api/v1/")[2]
    assert seen == ["p0", "p1", "p2"]


def test_a_search_longer_than_any_name_is_refused(program: Program, job: Job) -> None:
    answer = program.get(f"jobs/?q={'x' * 60_000}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "q"


@pytest.mark.parametrize("query", ["q=%00", "template=%00", "template=nothing"])
def test_a_filter_that_no_job_can_match_is_no_fault(program: Program, job: Job, query: str) -> None:
    assert program.get(f"jobs/?{query}").status_code == 200


def test_an_address_with_too_many_parameters_is_a_problem_document(program: Program) -> None:
    answer = program.get("jobs/?" + "&".join(f"a{number}=1" for number in range(1500)))
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


def test_usage_tells_whole_seconds(member: User, job: Job, team: Team) -> None:
    start = now().replace(microsecond=0)
    Interval.objects.create(
        job=job, team=team, attempt_number=1, pod_uid="p", pod_name="p", resource="cpu", units=2,
        started_at=start, ended_at=start + timedelta(seconds=90), end_source="containers",
        seen_at=start,
    )  # fmt: skip
    (row,) = Program(member).get(f"usage/?job={job.id}").json()["results"]
    assert (row["resource"], row["units"], row["seconds"]) == ("cpu", 2.0, 90)


def test_the_list_costs_the_same_number_of_queries_however_long(member: User, team: Team, site: factories.Site) -> None:
    program = Program(member)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert program.get("jobs/?limit=50").status_code == 200
        return len(captured)

    factories.make_job(team, member, site.cpu)
    queries()
    few = queries()
    for _ in range(30):
        factories.make_job(team, member, site.cpu)
    assert queries() == few


def test_a_job_reads_alike_in_the_list_and_alone(member: User, team: Team, job: Job, site: factories.Site) -> None:
    other = factories.make_job(
        team, member, site.cpu, state=State.CANCELLED, rerun_of=job, started_at=now(), ended_at=now()
    )
    Job.objects.filter(pk=other.pk).update(cancel_requested_at=now(), reason="Lead said so.", reason_code="cancelled")
    program = Program(member)
    rows = program.get("jobs/").json()["results"]
    assert len(rows) == 2
    for row in rows:
        alone = program.get(f"jobs/{row['id']}/").json()
        assert row == {name: alone[name] for name in row}
    assert rows[0]["rerun_of"] == str(job.pk)


def test_pages_by_cursor_hold_every_job_once(member: User, team: Team, site: factories.Site) -> None:
    made = {str(factories.make_job(team, member, site.cpu).id) for _ in range(7)}
    program = Program(member)
    seen: list[str] = []
    address = "jobs/?limit=3"
    while address:
        page = program.get(address).json()
        seen += [job["id"] for job in page["results"]]
        address = (page["next"] or "").partition("/api/v1/")[2]
    assert len(seen) == 7
    assert set(seen) == made


def test_filters_by_state_and_name(member: User, team: Team, site: factories.Site) -> None:
    factories.make_job(team, member, site.cpu, state="running", name="alpha")
    factories.make_job(team, member, site.cpu, state="succeeded", name="beta")
    program = Program(member)
    assert [job["name"] for job in program.get("jobs/?state=running").json()["results"]] == ["alpha"]
    assert [job["name"] for job in program.get("jobs/?q=bet").json()["results"]] == ["beta"]
    assert program.get("jobs/?state=flying").status_code == 422


def test_the_schema_of_a_template_knows_the_teams_flavors(program: Program) -> None:
    schema = program.get("templates/gpu-check/schema/?team=vision").json()
    assert "h100" in str(schema)
    assert program.get("templates/gpu-check/schema/").status_code == 422
    assert program.get("templates/nonsense/").status_code == 404


def test_queues_and_prices_can_be_read(program: Program) -> None:
    queues = {queue["name"]: queue for queue in program.get("queues/?team=vision").json()}
    assert set(queues) == {"gpu", "cpu"}
    assert program.get("prices/").json()[0]["amount"] == "2.4"
    assert program.get("teams/").json() == [{"slug": "vision", "name": "Vision", "role": "member"}]


def test_an_address_that_does_not_exist_is_a_problem_document(program: Program) -> None:
    answer = program.get("nothing/here/")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


def test_cancel_and_rerun_through_the_api(program: Program, submit: Submit) -> None:
    job = submit().json()
    assert program.post(f"jobs/{job['id']}/cancel/").json()["state"] in {"cancelled", "cancelling"}
    assert program.post(f"jobs/{job['id']}/cancel/").status_code == 200
    again = program.post(f"jobs/{job['id']}/rerun/")
    assert again.status_code == 201
    assert again.json()["rerun_of"] == job["id"]


def test_a_secret_is_in_no_answer(program: Program, submit: Submit) -> None:
    body = {"values": {"script": "true", "secret": "s3cr3t-value"}, "name": "with a secret"}
    answer = submit(**body)
    assert answer.status_code == 201
    pages = [answer, *(program.get(f"jobs/{answer.json()['id']}/{part}") for part in PARTS)]
    assert all(b"s3cr3t-value" not in page.content for page in pages)
    preview = program.post("jobs/preview/", {"team": "vision", "template": "script", **body})
    assert preview.status_code == 200
    assert b"s3cr3t-value" not in preview.content
