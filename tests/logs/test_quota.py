"""How much log of one job is kept: declared where it ends, counted beyond, and no harm to the job."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.jobs.models import Job, State
from portal.logs import selectors, services
from portal.logs.models import Cause, Gap, Stream
from portal.logs.specs import Record, Taken
from tests import factories
from tests.logs.stored import START, store_lines, training_lines


@pytest.fixture(autouse=True)
def ten_thousand_bytes(settings: Any) -> None:
    settings.BEAMTIME_LOG_BYTES_PER_JOB = 10_000


def records(number: int, first: int = 1) -> list[Record]:
    """Lines of 10 bytes, one each second."""
    return [Record(START + n * 10**9, b"line %04d\n" % n) for n in range(first, first + number)]


def full(stream: Stream) -> list[Record]:
    """Fill the stream to the limit: 1,000 lines."""
    taken = records(1000)
    store_lines(stream, taken, portion=100)
    return taken


def test_what_comes_after_the_limit_is_counted_and_left_out(job: Job, stream: Stream) -> None:
    kept = full(stream)
    assert Gap.objects.count() == 0  # nothing has been left out yet
    for first in (1001, 1051):
        taken = services.append(stream_id=stream.pk, first_line=1001, records=records(50, first))
        assert taken is Taken.LEFT_OUT
        assert taken
    (gap,) = selectors.gaps_of(stream)
    assert (gap.before_line, gap.cause, gap.lines, gap.bytes) == (1001, Cause.FULL, 100, 1000)
    assert (gap.after_ns, gap.until_ns) == (kept[-1].time_ns, records(1, 1100)[0].time_ns)
    assert "100 more lines, 1,000 bytes, were left out" in selectors.trouble_of(stream)
    assert "Nothing after line 1,000 is kept" in selectors.trouble_of(stream)
    stream.refresh_from_db()
    assert (stream.next_line, stream.bytes) == (1001, 10_000)
    job.refresh_from_db()
    assert job.state == State.RUNNING


def test_the_stream_still_completes_and_is_sealed(stream: Stream) -> None:
    full(stream)
    services.append(stream_id=stream.pk, first_line=1001, records=records(5, 1001))
    services.complete(stream_id=stream.pk, missing=Cause.DELETED)
    services.seal()
    stream.refresh_from_db()
    assert stream.sealed_at is not None
    assert [gap.cause for gap in selectors.gaps_of(stream)] == [Cause.FULL]
    assert selectors.lines(stream, 1000, 10).complete
    assert services.append(stream_id=stream.pk, first_line=1001, records=records(5, 1006)) is Taken.REFUSED


def test_lines_that_a_resumed_read_repeats_are_not_counted_twice(stream: Stream) -> None:
    full(stream)
    services.append(stream_id=stream.pk, first_line=1001, records=records(50, 1001))
    services.append(stream_id=stream.pk, first_line=1001, records=records(60, 1001))
    assert selectors.gaps_of(stream)[0].lines == 60


def test_a_full_stream_shows_no_unfinished_line_and_sends_no_reader_away(stream: Stream) -> None:
    full(stream)
    assert services.set_open_text(stream_id=stream.pk, next_line=1001, text="50 %")
    assert services.append(stream_id=stream.pk, first_line=1001, records=[], open_text="60 %")
    assert selectors.lines(stream, 1001, 1).open_text == ""


def test_the_limit_is_of_all_streams_of_a_job_and_of_no_other(job: Job, stream: Stream, member: Any, site: Any) -> None:
    full(stream)
    second, third = factories.make_stream(job), factories.make_stream(job, restart=1)
    for other in (second, third):
        # The first lines of a container that has started again are kept, so that one sees that it has.
        assert services.append(stream_id=other.pk, first_line=1, records=records(5)) is Taken.STORED
        assert services.append(stream_id=other.pk, first_line=6, records=records(5, 6)) is Taken.LEFT_OUT
    another = factories.make_stream(factories.make_job(job.team, member, site.cpu, state=State.RUNNING))
    store_lines(another, records(500))
    assert services.append(stream_id=another.pk, first_line=501, records=records(5)) is Taken.STORED


def test_without_a_limit_everything_is_kept(stream: Stream, settings: Any) -> None:
    settings.BEAMTIME_LOG_BYTES_PER_JOB = 0
    store_lines(stream, training_lines(2000))
    assert stream.full_at is None


def test_the_sum_over_the_job_is_not_asked_for_with_each_append(stream: Stream, settings: Any) -> None:
    settings.BEAMTIME_LOG_BYTES_PER_JOB = 1_000_000
    asked = []
    for n in range(20):
        with CaptureQueriesContext(connection) as seen:
            services.append(stream_id=stream.pk, first_line=n * 10 + 1, records=records(10, n * 10 + 1))
        asked.append(any("SUM(" in query["sql"] for query in seen.captured_queries))
    assert asked == [True, *[False] * 19]
