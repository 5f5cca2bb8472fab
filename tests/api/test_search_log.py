"""Looking through a log by API: portions, marks, errors; what cannot be looked for is said."""

from typing import Any

import pytest

from portal.jobs.models import Job, State
from portal.logs import services
from portal.logs.models import Stream
from portal.logs.specs import Record
from portal.teams.models import Team, User
from tests import factories
from tests.api.conftest import Program


@pytest.fixture
def stream(team: Team, member: User, templates: factories.Site) -> Stream:
    job = factories.make_job(team, member, templates.cpu, state=State.RUNNING)
    stream = factories.make_stream(job)
    texts = [f"step {n} loss {n % 10}\n" for n in range(1, 1000)] + ["Traceback (most recent call last):\n"]
    records = [Record(10**18, text.encode()) for text in texts]
    assert services.append(stream_id=stream.pk, first_line=1, records=records)
    return stream


def look(program: Program, stream: Stream, query: str) -> Any:
    return program.get(f"streams/{stream.pk}/search/?{query}")


def test_portions_add_up_to_the_whole(program: Program, stream: Stream) -> None:
    hits: list[int] = []
    position: int | None = 1
    while position is not None:
        page = look(program, stream, f"q=LOSS+7&limit=30&from={position}").json()
        assert (page["from"], page["lines"], page["count"]) == (position, 1000, len(page["hits"]))
        hits += page["hits"]
        position = page["next"]
    assert hits == list(range(7, 1000, 10))


def test_direction_case_and_expression(program: Program, stream: Stream) -> None:
    assert look(program, stream, "q=loss&direction=backward&limit=1").json()["hits"] == [999]
    assert look(program, stream, "q=loss&direction=backward&from=50&limit=2").json()["hits"] == [50, 49]
    assert look(program, stream, "q=LOSS&case=yes").json()["hits"] == []
    assert look(program, stream, "q=%5Estep+1.1+&regex=yes").json()["hits"] == list(range(101, 200, 10))
    assert look(program, stream, "errors=yes").json()["hits"] == [1000]
    assert look(program, stream, "q=loss&limit=0").json() | {"lines": 0} == {
        "from": 1, "next": None, "hits": [], "count": 999, "lines": 0, "marks": {},
    }  # fmt: skip


def test_marks_of_a_range(program: Program, stream: Stream) -> None:
    page = look(program, stream, "q=s%2B+1&regex=yes&from=1&to=3").json()
    assert page["hits"] == [1]
    assert page["marks"] == {"1": [[9, 13]]}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "q"),
        ("q=", "q"),
        ("q=(&regex=yes", "q"),
        ("q=(%3F%3Da)&regex=yes", "q"),
        ("q=" + "x" * 501, "q"),
        ("q=a%00", "q"),
        ("q=a&regex=maybe", "regex"),
        ("q=a&direction=up", "direction"),
        ("q=a&from=0", "from"),
        ("q=a&from=-1", "from"),
        ("q=a&from=1000000000000000000", "from"),
        ("q=a&from=x", "from"),
        ("q=a&limit=5001", "limit"),
        ("q=a&to=0", "to"),
    ],
)
def test_what_cannot_be_asked_is_named(program: Program, stream: Stream, query: str, field: str) -> None:
    answer = look(program, stream, query)
    assert answer.status_code in {422, 400}
    assert field in str(answer.json())


def test_case_17_a_foreign_log_is_not_looked_through(program: Program, stream: Stream, outsider: User) -> None:
    """The same answer as for an id that does not exist."""
    theirs = Program(outsider)
    refused, absent = (
        look(theirs, stream, "q=loss"),
        theirs.get("streams/00000000-0000-0000-0000-000000000000/search/?q=loss"),
    )
    assert refused.status_code == absent.status_code == 404
    assert look(Program(None), stream, "q=loss").status_code == 401
    assert Job.objects.count() == 1
