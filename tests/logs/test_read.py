"""Reading: any line at once, by its number; the same lines whichever way one comes."""

import time
from collections.abc import Callable
from uuid import uuid4

import pytest
from django.test.utils import CaptureQueriesContext

from portal.core.errors import Missing
from portal.jobs.models import Job
from portal.logs import selectors, services
from portal.logs.models import Chunk, Stream
from portal.logs.policy import CHUNK_LINES
from portal.logs.specs import Record
from portal.logs.store import store
from portal.teams.models import Membership, User

QUERIES = Callable[..., CaptureQueriesContext]


def fill(stream: Stream, number: int, portion: int = 700) -> list[bytes]:
    """Lines 1 to `number`, many of them in each nanosecond."""
    texts = [b"%d\n" % n for n in range(1, number + 1)]
    for start in range(0, number, portion):
        part = texts[start : start + portion]
        assert services.append(
            stream_id=stream.pk, first_line=start + 1, records=[Record(start // 5000, text) for text in part]
        )
    return texts


def test_case_01_100_000_lines_of_a_few_moments_page_by_page(stream: Stream) -> None:
    texts = fill(stream, 100_000)
    found: list[str] = []
    position = 1
    while position <= 100_000:
        page = selectors.lines(stream, position, 4321)
        assert [line.n for line in page.lines] == list(range(position, page.next))
        found += [line.text for line in page.lines]
        position = page.next
    assert found == [str(n) for n in range(1, 100_001)]
    assert b"".join(selectors.content(stream)) == b"".join(texts)


def test_case_41_every_direction_gives_the_same_order(stream: Stream) -> None:
    fill(stream, 10)
    forward = [line.text for line in selectors.lines(stream, 1, 10).lines]
    upwards = [selectors.lines(stream, n, 1).lines[0].text for n in range(10, 0, -1)]
    tail = [line.text for line in selectors.tail(stream, 10).lines]
    assert forward == tail == upwards[::-1] == [str(n) for n in range(1, 11)]


def test_case_47_numbers_and_download_hold_the_same_lines(stream: Stream) -> None:
    texts = [b"\n" if n % 7 == 0 else b"\x1b[3%dmline %d\x07\r\x00\n" % (n % 8, n) for n in range(1, 400)]
    for start in range(0, len(texts), 13):
        part = [Record(n, text) for n, text in enumerate(texts[start : start + 13])]
        services.append(stream_id=stream.pk, first_line=start + 1, records=part)
    downloaded = b"".join(selectors.content(stream)).split(b"\n")[:-1]
    paged = [line for first in range(1, 400, 50) for line in selectors.lines(stream, first, 50).lines]
    assert [line.n for line in paged] == list(range(1, 400))
    assert [line.text.encode() for line in paged] == downloaded


@pytest.mark.parametrize("first", [1, 2, 499, 500, 501, 777, 1400, 2100])
def test_a_page_begins_at_the_line_that_was_asked_for(stream: Stream, first: int) -> None:
    fill(stream, 2100)
    page = selectors.lines(stream, first, 3)
    assert [line.text for line in page.lines] == [str(n) for n in range(first, min(first + 3, 2101))]


def test_before_the_start_and_beyond_the_end(stream: Stream) -> None:
    fill(stream, 5)
    assert [line.n for line in selectors.lines(stream, -3, 2).lines] == [1, 2]
    page = selectors.lines(stream, 99, 2)
    assert (page.first, page.next, list(page.lines)) == (6, 6, [])
    assert [line.n for line in selectors.tail(stream, 2).lines] == [4, 5]
    assert [line.n for line in selectors.tail(stream, 100).lines] == [1, 2, 3, 4, 5]


def test_a_page_is_bounded_in_lines_and_in_bytes(stream: Stream) -> None:
    fill(stream, 6000)
    assert len(selectors.lines(stream, 1, 1_000_000).lines) == selectors.MOST_LINES
    wide = [Record(0, b"x" * 200_000 + b"\n") for _ in range(40)]
    services.append(stream_id=stream.pk, first_line=6001, records=wide)
    page = selectors.lines(stream, 6001, 5000)
    assert len(page.lines) == 21
    assert page.next == 6022
    assert not page.complete


def test_any_line_of_a_million_is_found_at_once(stream: Stream, django_assert_num_queries: QUERIES) -> None:
    # Written as the store would write it: only reading is measured here.
    data = [b"".join(b"%d\n" % n for n in range(first, first + 500)) for first in range(1, 1_000_001, 500)]
    rows, byte = [], 0
    for index, text in enumerate(data):
        rows.append(
            Chunk(
                stream=stream,
                first_line=index * 500 + 1,
                lines=500,
                first_byte=byte,
                data=text,
                times=bytes(8 * 500),
            )
        )
        byte += len(text)
    Chunk.objects.bulk_create(rows, batch_size=500)
    Stream.objects.filter(pk=stream.pk).update(next_line=1_000_001, bytes=byte)
    for first in (1, 500, 501, 499_999, 999_900):
        began = time.perf_counter()
        with django_assert_num_queries(2):
            page = selectors.lines(stream, first, 100)
        assert [line.text for line in page.lines] == [str(n) for n in range(first, first + 100)]
        assert time.perf_counter() - began < 0.25
    assert sum(len(part) for part in selectors.content(stream)) == byte


def test_reading_needs_two_queries(stream: Stream, django_assert_num_queries: QUERIES) -> None:
    fill(stream, 20_000)
    with django_assert_num_queries(2):
        assert len(selectors.lines(stream, 7_001, 5000).lines) == 5000
    with django_assert_num_queries(3):
        selectors.tail(stream, 200)


def test_lines_merged_while_somebody_reads_are_neither_doubled_nor_lost(stream: Stream) -> None:
    fill(stream, CHUNK_LINES + 60, portion=CHUNK_LINES)
    reading, backwards = selectors.content(stream), store().backwards(stream.pk)
    got, newest = [next(reading)], [next(backwards)]
    services.append(
        stream_id=stream.pk, first_line=CHUNK_LINES + 61, records=[Record(0, b"%d\n" % n) for n in range(561, 661)]
    )
    assert Chunk.objects.filter(stream=stream).count() == 2
    got += list(reading)
    newest += list(backwards)
    assert b"".join(got).split() == [b"%d" % n for n in range(1, b"".join(got).count(b"\n") + 1)]
    assert [int(record.text) for record in newest] == list(range(560, 0, -1))


def test_case_17_a_foreign_log_looks_like_one_that_does_not_exist(
    stream: Stream, member: User, outsider: User, auditor: User, job: Job
) -> None:
    assert selectors.stream_for(member, stream.pk) == stream
    assert selectors.stream_for(auditor, str(stream.pk)) == stream
    refusals = set()
    for person, key in ((outsider, stream.pk), (member, uuid4()), (member, "12"), (member, "../etc")):
        with pytest.raises(Missing) as refusal:
            selectors.stream_for(person, key)
        refusals.add(str(refusal.value))
    assert len(refusals) == 1
    Membership.objects.filter(user=member).delete()
    with pytest.raises(Missing):
        selectors.stream_for(member, stream.pk)
