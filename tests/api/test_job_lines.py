"""All logs of a job by API: merged by time with a cursor, and as one archive."""

import io
import tarfile
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from portal.jobs.models import Job, State
from portal.logs import services
from portal.logs.models import Cause
from portal.logs.specs import Record
from portal.teams.models import Team, User
from tests import factories
from tests.api.conftest import Program


@pytest.fixture
def job(team: Team, member: User, templates: factories.Site) -> Job:
    job = factories.make_job(team, member, templates.cpu, state=State.RUNNING)
    for rank in (0, 1):
        stream = factories.make_stream(job, pod_name=f"worker-{rank}", pod_index=rank)
        records = [Record((10 * n + rank) * 10**9, f"rank {rank} line {n}\n".encode()) for n in range(1, 51)]
        records.append(Record(10**12, f"ValueError: of {rank}\n".encode()))
        assert services.append(stream_id=stream.pk, first_line=1, records=records)
    return job


def ask(program: Program, job: Job, query: str = "") -> Any:
    return program.get(f"jobs/{job.pk}/lines/?{query}")


def test_cursors_lead_through_all_lines(program: Program, job: Job) -> None:
    found: list[tuple[int, int]] = []
    cursor = ""
    while True:
        page = ask(program, job, f"limit=7&cursor={cursor}").json()
        found += [(line["s"], line["n"]) for line in page["lines"]]
        cursor = page["after"]
        if page["at_end"]:
            break
    assert found == [(rank, n) for n in range(1, 52) for rank in (0, 1)]
    assert not page["complete"]
    tail = ask(program, job, "direction=backward&limit=2").json()
    assert [line["text"] for line in tail["lines"]] == ["ValueError: of 0", "ValueError: of 1"]
    above = ask(program, job, f"direction=backward&limit=1&cursor={tail['before']}").json()
    assert [(line["text"], line["t"]) for line in above["lines"]] == [
        ("rank 1 line 50", "1970-01-01T00:08:21.000000000Z")
    ]


def test_what_is_missing_stands_where_it_is_missing_at_every_level(program: Program, job: Job) -> None:
    stream = job.streams.get(pod_index=0)
    services.note_gap(stream_id=stream.pk, before_line=3, cause=Cause.SKIPPED, lines=4)
    services.note_gap(stream_id=stream.pk, before_line=52, cause=Cause.ROTATED)
    [before] = [line for line in ask(program, job).json()["lines"] if line["gaps"]]
    assert (before["s"], before["n"]) == (0, 3)
    assert "4 lines are missing before line 3" in before["gaps"][0]
    page = ask(program, job, "level=error&direction=backward").json()
    assert [line["n"] for line in page["lines"]] == [3, 51, 51]
    [missing] = page["missing"]
    assert missing["s"] == 0
    assert "missing before line 52" in missing["words"]
    # Only at the end.
    assert ask(program, job, "limit=2").json()["missing"] == []


def test_some_streams_and_some_levels_only(program: Program, job: Job) -> None:
    streams = ask(program, job).json()["streams"]
    page = ask(program, job, f"streams={streams[1]}&limit=2").json()
    assert [line["text"] for line in page["lines"]] == ["rank 1 line 1", "rank 1 line 2"]
    page = ask(program, job, "level=error").json()
    assert [(line["n"], line["level"]) for line in page["lines"]] == [(51, "error"), (51, "error")]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("cursor=x!", "cursor"),
        ("cursor=1.1.1", "cursor"),
        ("limit=0", "limit"),
        ("limit=2001", "limit"),
        ("level=loud", "level"),
        ("direction=up", "direction"),
        ("streams=1", "streams"),
    ],
)
def test_what_cannot_be_asked_is_named(program: Program, job: Job, query: str, field: str) -> None:
    answer = ask(program, job, query)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


def test_case_17_foreign_logs_are_neither_merged_nor_packed(program: Program, job: Job, outsider: User) -> None:
    theirs = Program(outsider)
    for path in ("lines/", "download/"):
        assert theirs.get(f"jobs/{job.pk}/{path}").status_code == 404
        assert Program(None).get(f"jobs/{job.pk}/{path}").status_code == 401


def test_the_archive_is_streamed(program: Program, job: Job) -> None:
    answer = program.get(f"jobs/{job.pk}/download/")

    async def gathered() -> bytes:
        return b"".join([part async for part in answer])

    with tarfile.open(fileobj=io.BytesIO(async_to_sync(gathered)()), mode="r:gz") as archive:
        names = [entry.name.split("/")[-1] for entry in archive]
    assert names == ["worker-0.main.log", "worker-1.main.log", "INDEX.txt"]
    assert answer.headers["Content-Type"] == "application/gzip"
