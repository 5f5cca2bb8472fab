"""The end of a stream belongs to the stream."""

from portal.jobs.models import Job
from portal.logs import selectors, services
from portal.logs.models import Cause, Stream
from portal.logs.specs import Record
from tests import factories


def test_a_complete_stream_takes_no_more_lines_and_says_that_this_is_all(stream: Stream) -> None:
    services.append(stream_id=stream.pk, first_line=1, records=[Record(1, b"a\n"), Record(2, b"last")], open_text="x")
    assert not selectors.lines(stream, 1, 10).complete
    services.complete(stream_id=stream.pk)
    page = selectors.lines(stream, 1, 10)
    assert (page.complete, page.open_text, page.lines[-1].text) == (True, "", "last")
    assert not services.append(stream_id=stream.pk, first_line=3, records=[Record(3, b"late\n")])
    assert b"".join(selectors.content(stream)) == b"a\nlast"


def test_only_the_page_that_reaches_the_end_says_complete(stream: Stream) -> None:
    services.append(stream_id=stream.pk, first_line=1, records=[Record(n, b"x\n") for n in range(10)])
    services.complete(stream_id=stream.pk)
    assert not selectors.lines(stream, 1, 9).complete
    assert selectors.lines(stream, 1, 10).complete
    assert selectors.lines(stream, 11, 10).complete


def test_trouble_is_kept_once_and_the_first_end_counts(stream: Stream) -> None:
    for _ in range(2):
        services.note_gap(stream_id=stream.pk, before_line=5, cause=Cause.ROTATED)
        services.complete(stream_id=stream.pk, missing=Cause.DELETED)
    services.complete(stream_id=stream.pk, missing=Cause.FULL)
    assert [gap.cause for gap in selectors.gaps_of(stream)] == [Cause.DELETED, Cause.ROTATED]
    assert "before line 5" in selectors.trouble_of(stream)
    assert "the pod was deleted" in selectors.trouble_of(stream)


def test_an_attempt_is_complete_when_each_of_its_streams_is(job: Job, stream: Stream) -> None:
    other = factories.make_stream(job)
    assert not selectors.all_complete(job_id=job.pk, attempt_number=1)
    services.complete(stream_id=stream.pk)
    assert not selectors.all_complete(job_id=job.pk, attempt_number=1)
    services.complete(stream_id=other.pk)
    assert selectors.all_complete(job_id=job.pk, attempt_number=1)
