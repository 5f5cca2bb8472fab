"""All logs of a job as one: each line once, in either direction, whatever the times say."""

import itertools
import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.core.errors import Refused
from portal.jobs.models import Job
from portal.logs import services
from portal.logs.merged import Level, MergedLine, in_order, merged, pack, unpack
from portal.logs.models import Stream
from portal.logs.specs import Record
from tests import factories

pytestmark = pytest.mark.django_db


def log(job: Job, times: list[int], *, texts: list[str] | None = None) -> Stream:
    stream = factories.make_stream(job)
    records = [Record(time, f"{texts[place] if texts else place}\n".encode()) for place, time in enumerate(times)]
    assert services.append(stream_id=stream.pk, first_line=1, records=records)
    stream.refresh_from_db()
    return stream


def forwards(streams: list[Stream], limit: int, level: Level = "all") -> list[tuple[int, int]]:
    found: list[MergedLine] = []
    cursor: str | None = None
    while True:
        page = merged(streams, cursor=cursor, limit=limit, level=level)
        found += page.lines
        cursor = page.after
        if page.at_end:
            return [(line.stream, line.n) for line in found]


def backwards(streams: list[Stream], limit: int) -> list[tuple[int, int]]:
    found: list[MergedLine] = []
    cursor: str | None = None
    while True:
        page = merged(streams, cursor=cursor, limit=limit, backward=True)
        found = [*page.lines, *found]
        cursor = page.before
        if page.at_start:
            return [(line.stream, line.n) for line in found]


def test_lines_stand_in_the_order_of_time(job: Job) -> None:
    streams = in_order([log(job, [10, 40, 50]), log(job, [20, 30, 60])])
    expected = [(0, 1), (1, 1), (1, 2), (0, 2), (0, 3), (1, 3)]
    assert forwards(streams, 4) == backwards(streams, 4) == expected


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(times=st.lists(st.lists(st.integers(1, 9), max_size=60), min_size=1, max_size=4), limit=st.integers(1, 25))
def test_case_41_each_line_once_and_each_log_in_its_own_order(job: Job, times: list[list[int]], limit: int) -> None:
    """Equal times, and times that go back: forwards and backwards alike."""
    Stream.objects.all().delete()
    streams = in_order([log(job, each) if each else factories.make_stream(job) for each in times])
    everything = {(s, n) for s, stream in enumerate(streams) for n in range(1, stream.next_line)}
    for found in (forwards(streams, limit), backwards(streams, limit)):
        assert len(found) == len(everything)
        assert set(found) == everything
        for place in range(len(streams)):
            own = [n for s, n in found if s == place]
            assert own == sorted(own)


def test_what_is_written_later_follows(job: Job) -> None:
    """Also a log that begins later: the cursor of before still counts."""
    first = log(job, [10, 20])
    page = merged([first], cursor=None, limit=10, backward=True)
    assert (page.at_end, page.complete) == (True, False)
    late = log(job, [15])
    assert services.append(stream_id=first.pk, first_line=3, records=[Record(30, b"x\n")])
    streams = in_order(Stream.objects.all())
    assert streams == [first, late]
    again = merged(streams, cursor=page.after, limit=10)
    assert [(line.stream, line.n) for line in again.lines] == [(1, 1), (0, 3)]
    for stream in streams:
        services.complete(stream_id=stream.pk)
    assert merged(in_order(Stream.objects.all()), cursor=again.after, limit=1).complete


def test_only_lines_of_a_level(job: Job) -> None:
    texts = ["fine", "ValueError: no", "WARN  slow", "fine", "CUDA error: bad"]
    streams = [log(job, [1, 2, 3, 4, 5], texts=texts)]
    assert forwards(streams, 1, "error") == [(0, 2), (0, 5)]
    assert forwards(streams, 9, "warning") == [(0, 2), (0, 3), (0, 5)]
    page = merged(streams, cursor=None, limit=1, backward=True, level="error")
    assert [line.n for line in page.lines] == [5]


def test_a_slow_machine_gives_as_many_lines_as_were_asked_for(job: Job) -> None:
    """The beginnings of hundreds of logs may take longer to read than the patience for a rare level."""
    streams = in_order([log(job, [10, 40, 50]), log(job, [20, 30, 60])])
    hours = itertools.count(0, 3600)
    page = merged(streams, cursor=None, limit=4, clock=lambda: next(hours))
    assert [(line.stream, line.n) for line in page.lines] == [(0, 1), (1, 1), (1, 2), (0, 2)]


def test_looking_for_a_level_begins_when_the_logs_are_open(job: Job) -> None:
    """Else a look that took its whole second to open them would end behind one line, again and again."""
    streams = in_order([log(job, [1, 2], texts=["nothing", "ERROR: one"]), log(job, [3], texts=["ERROR: two"])])
    with CaptureQueriesContext(connection) as asked:

        def clock() -> float:
            return 100.0 if len(asked) else 0.0

        page = merged(streams, cursor=None, limit=9, level="error", clock=clock)
    assert [(line.stream, line.n) for line in page.lines] == [(0, 2), (1, 1)]


def test_256_pods_are_read_in_bounded_portions(job: Job) -> None:
    streams = in_order([log(job, [place, place + 300]) for place in range(1, 257)])
    page = merged(streams, cursor=None, limit=100, clock=lambda: 0)
    assert [line.time_ns for line in page.lines] == list(range(1, 101))
    assert len(page.after) < 2000, "fits into an address"


def test_a_log_that_appears_earlier_in_the_order_shifts_nothing(job: Job) -> None:
    """Clocks differ and commits change places: what was made first may be seen last."""
    known = [log(job, [10, 30]), log(job, [20])]
    page = merged(known, cursor=None, limit=10)
    early = log(job, [15, 25])
    Stream.objects.filter(pk=early.pk).update(created_at=known[0].created_at - timedelta(seconds=5))
    streams = in_order(Stream.objects.all())
    assert streams == [early, *known]
    again = merged(streams, cursor=page.after, limit=10)
    assert [(line.stream, line.n) for line in again.lines] == [(0, 1), (0, 2)]
    assert merged(streams, cursor=page.before, limit=10, backward=True).lines == []


def test_a_cursor_counts_for_some_of_the_logs_too(job: Job) -> None:
    streams = in_order([log(job, [10, 30]), log(job, [20, 40])])
    page = merged(streams, cursor=None, limit=3)
    assert [(line.stream, line.n) for line in merged(streams[1:], cursor=page.after, limit=9).lines] == [(0, 2)]


def test_a_cursor_at_the_start_is_not_taken_for_none(job: Job) -> None:
    streams = [log(job, [1, 2])]
    start = merged(streams, cursor=None, limit=9).before
    assert start
    page = merged(streams, cursor=start, limit=9, backward=True)
    assert (list(page.lines), page.at_start) == ([], True)


def test_logs_whose_ids_begin_alike_keep_their_own_places(job: Job) -> None:
    """By chance one in some ten thousand jobs of hundreds of logs."""
    ids = [uuid.UUID(int=(7 << 96) + n) for n in range(3)]
    streams = in_order(factories.make_stream(job, id=key) for key in ids)
    for place, stream in enumerate(streams):
        records = [Record(n, b"x\n") for n in range(place + 1)]
        assert services.append(stream_id=stream.pk, first_line=1, records=records)
        stream.refresh_from_db()
    end = merged(streams, cursor=None, limit=9).after
    assert merged(streams, cursor=end, limit=9).at_end
    assert list(merged(streams, cursor=end, limit=9, backward=True).lines)


def test_the_cursor_of_512_long_logs_fits_into_an_address(job: Job) -> None:
    streams = [Stream(id=uuid.uuid4(), job=job, next_line=1_000_000) for _ in range(512)]
    cursor = pack([500_000 + n for n in range(512)], streams)
    assert len(cursor) < 5000
    assert unpack(cursor, streams) == [500_000 + n for n in range(512)]


@pytest.mark.parametrize("cursor", ["x!", "1.1", "-1", "", "1." * 40, "AQ" + "_" * 5000, "1..1", "AQAAAAAA", "A" * 8])
def test_a_cursor_that_is_none_is_refused(job: Job, cursor: str) -> None:
    with pytest.raises(Refused):
        merged([log(job, [1])], cursor=cursor, limit=1)


def test_a_cursor_beyond_the_end_is_the_end(job: Job) -> None:
    streams = [log(job, [1, 2])]
    page = merged(streams, cursor=pack([2**40], streams), limit=5)
    assert (list(page.lines), page.after) == ([], pack([3], streams))
