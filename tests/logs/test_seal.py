"""Sealing: lines move from chunks into segments, and no reader ever notices."""

import hashlib
import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import takewhile
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.config.celery import app
from portal.core import bus, leases
from portal.jobs.models import Job
from portal.logs import selectors, services, tasks
from portal.logs.models import Chunk, Segment, Stream
from portal.logs.policy import CHUNK_LINES
from portal.logs.services import sealing
from portal.logs.specs import Record
from portal.logs.store import blocks, chunks, segments, store
from tests import factories
from tests.logs.stored import SECOND, START, store_lines, training_lines

QUERIES = Callable[..., CaptureQueriesContext]


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of 256 KiB, so that a test of many need not write a hundred MiB."""
    monkeypatch.setattr(sealing, "SEGMENT_BYTES", 256 * 1024)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 100 * 1024)


def finished(stream: Stream, number: int) -> bytes:
    text = store_lines(stream, training_lines(number))
    services.complete(stream_id=stream.pk)
    stream.refresh_from_db()
    return text


def text_of(stream: Stream) -> bytes:
    return b"".join(selectors.content(stream))


def numbered(stream: Stream, first: int, limit: int) -> list[tuple[int, int, bytes]]:
    return [(line.n, line.time_ns, line.text.encode()) for line in selectors.lines(stream, first, limit).lines]


def expected(first: int, limit: int) -> list[tuple[int, int, bytes]]:
    return [
        (first + n, record.time_ns, record.text[:-1]) for n, record in enumerate(training_lines(limit, first=first))
    ]


@pytest.fixture
def half(stream: Stream) -> tuple[Stream, list[Record]]:
    """A stream that goes on, its first half sealed."""
    records = training_lines(12_000)
    store_lines(stream, records)
    assert services.seal() > 2
    stream.refresh_from_db()
    assert 1 < stream.sealed_line < stream.next_line
    return stream, records


def test_a_complete_log_is_sealed_whole_and_proved_by_its_digest(stream: Stream) -> None:
    text = finished(stream, 9000)
    services.seal()
    stream.refresh_from_db()
    assert stream.sealed_at is not None
    assert stream.sha256 == hashlib.sha256(text).hexdigest()
    assert (stream.sealed_line, stream.sealed_bytes) == (9001, len(text))
    assert not Chunk.objects.filter(stream=stream).exists()
    assert 3 <= Segment.objects.filter(stream=stream).count() <= 6
    assert text_of(stream) == text
    page = selectors.lines(stream, 8_990, 5000)
    assert (page.next, page.complete) == (9001, True)


def test_an_empty_log_is_sealed_too(stream: Stream) -> None:
    services.complete(stream_id=stream.pk)
    services.seal()
    stream.refresh_from_db()
    assert stream.sealed_at is not None
    assert stream.sha256 == hashlib.sha256(b"").hexdigest()
    assert text_of(stream) == b""


def test_a_log_that_goes_on_is_sealed_behind_the_cursor(half: tuple[Stream, list[Record]]) -> None:
    stream, records = half
    assert stream.sealed_at is None
    assert stream.sha256 == ""
    assert stream.next_line - stream.sealed_line >= CHUNK_LINES
    # What a resumed read asks for never depends on another place than the chunks.
    assert records[stream.sealed_line - 1].time_ns <= records[-1].time_ns - 10 * SECOND
    assert services.seal() == 0
    more = training_lines(5000, first=12_001)
    text = b"".join(record.text for record in records) + store_lines(stream, more)
    assert text_of(stream) == text
    services.complete(stream_id=stream.pk)
    services.seal()
    stream.refresh_from_db()
    assert stream.sha256 == hashlib.sha256(text).hexdigest()
    assert text_of(stream) == text


def test_lines_of_the_last_seconds_stay_in_chunks_however_many_they_are(stream: Stream) -> None:
    store_lines(stream, training_lines(12_000, step_ns=1000))
    assert services.seal() == 0
    assert not Segment.objects.exists()


@pytest.mark.parametrize("first", [1, 2, 499, 500, 1001, 3333, 8_999])
def test_any_line_is_found_by_its_number_before_and_after(stream: Stream, first: int) -> None:
    finished(stream, 9000)
    before = numbered(stream, first, 700)
    services.seal()
    assert numbered(stream, first, 700) == before == expected(first, min(700, 9001 - first))


def test_case_43_an_old_log_reads_the_same_in_both_directions(half: tuple[Stream, list[Record]]) -> None:
    stream, records = half
    border = stream.sealed_line
    for first in (1, border - 1, border, border + 1, border - 300, 11_990):
        assert numbered(stream, first, 600) == expected(first, min(600, 12_001 - first))
    assert list(store().backwards(stream.pk)) == records[::-1]
    forward = list(store().scan(stream.pk))
    back = list(store().scan_back(stream.pk))
    text = b"".join(record.text for record in records)
    assert b"".join(data for _, data in forward) == text
    assert b"".join(data for _, data in back[::-1]) == text
    assert all(len(data) <= 300 * 1024 for _, data in forward + back)


@pytest.mark.parametrize("line", [1, 2, 2000, 5000, 11_999, 12_000])
def test_a_scan_begins_at_the_line_and_a_scan_back_ends_with_it(half: tuple[Stream, list[Record]], line: int) -> None:
    stream, records = half
    number = line
    for first, data in store().scan(stream.pk, line):
        assert first == number
        number += data.count(b"\n")
    assert number == 12_001
    assert b"".join(data for _, data in store().scan(stream.pk, line)) == b"".join(r.text for r in records[line - 1 :])
    parts = list(store().scan_back(stream.pk, line))
    assert b"".join(data for _, data in parts[::-1]) == b"".join(record.text for record in records[:line])
    assert parts[-1][0] == 1


def test_what_a_resumed_read_repeats_is_found_across_the_border(half: tuple[Stream, list[Record]]) -> None:
    stream, records = half
    since = records[stream.sealed_line - 50].time_ns
    found = list(takewhile(lambda record: record.time_ns >= since, selectors.newest_first(stream.pk)))
    assert found == [record for record in records if record.time_ns >= since][::-1]


def test_a_sealed_line_costs_one_row_and_one_block(stream: Stream, django_assert_num_queries: QUERIES) -> None:
    finished(stream, 9000)
    services.seal()
    with django_assert_num_queries(3):
        assert numbered(stream, 4000, 10) == expected(4000, 10)


def test_what_is_asked_of_the_newest_lines_unpacks_nothing(
    half: tuple[Stream, list[Record]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, records = half
    monkeypatch.setattr("portal.logs.store.segments.unpack_text", None)
    since = records[-1].time_ns - SECOND
    found = takewhile(lambda record: record.time_ns >= since, selectors.newest_first(stream.pk))
    assert len(list(found)) == 51


def test_an_old_line_unpacks_no_more_than_its_block(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(stream, 9000)
    services.seal()
    unpacked: list[int] = []
    real = blocks.unpack_text
    monkeypatch.setattr(
        "portal.logs.store.segments.unpack_text",
        lambda *given: unpacked.append(1) or real(*given),  # type: ignore[func-returns-value]
    )
    numbered(stream, 4000, 1)
    assert len(unpacked) == 1


def test_pieces_of_a_line_too_long_and_a_torn_end_are_sealed_as_they_are(stream: Stream) -> None:
    records = [
        Record(START + n, text)
        for n, text in enumerate([b"a\n", b"x" * 262_144, b"y" * 9, b"\n", b"\xff\x00\n", b"end"])
    ]
    text = store_lines(stream, records)
    services.complete(stream_id=stream.pk)
    services.seal()
    assert text_of(stream) == text
    assert list(store().backwards(stream.pk)) == records[::-1]
    assert [line.n for line in selectors.lines(stream, 3, 9).lines] == [3, 4, 5, 6]


def test_the_clock_asks_for_it(settings: Any, stream: Stream) -> None:
    asked = {row["task"] for row in settings.CELERY_BEAT_SCHEDULE.values()}
    assert {"logs.seal", "logs.expire"} <= asked & set(app.tasks)
    text = finished(stream, 100)
    tasks.seal()
    tasks.expire()
    stream.refresh_from_db()
    assert stream.sha256 == hashlib.sha256(text).hexdigest()


# --- nothing is lost, whoever dies and whoever comes in between ------------------------------------------------------


@pytest.mark.parametrize("step", ["build", "create", "delete", "update"])
def test_a_sealer_that_dies_anywhere_loses_nothing(stream: Stream, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    text = finished(stream, 6000)

    def die(*given: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        match step:
            case "build":
                patch.setattr(sealing, "_commit", die)
            case "create":
                patch.setattr(Segment.objects, "create", die)
            case "delete":
                patch.setattr("django.db.models.query.QuerySet.delete", die)
            case "update":
                real = Segment.objects.create
                patch.setattr(Segment.objects, "create", lambda **row: (real(**row), die()))
        with pytest.raises(KeyboardInterrupt):
            services.seal_stream(stream_id=stream.pk)
    stream.refresh_from_db()
    assert (stream.sealed_line, Segment.objects.count()) == (1, 0)
    assert text_of(stream) == text
    services.seal_stream(stream_id=stream.pk)
    stream.refresh_from_db()
    assert stream.sha256 == hashlib.sha256(text).hexdigest()


def test_a_segment_made_of_chunks_that_changed_meanwhile_is_thrown_away(stream: Stream) -> None:
    text = finished(stream, 3000)
    row = Stream.objects.get(pk=stream.pk)
    built = blocks.build(sealing._ready(row))
    last = (
        Chunk.objects.filter(stream=stream, first_line__lt=built.first_line + built.lines).order_by("first_line").last()
    )
    assert last is not None
    # As a merge would: the last chunk goes on beyond the end of the segment.
    following = Chunk.objects.filter(stream=stream, first_line__gt=last.first_line).order_by("first_line").first()
    if following is not None:
        Chunk.objects.filter(pk=last.pk).update(
            lines=last.lines + following.lines,
            data=bytes(last.data) + bytes(following.data),
            times=bytes(last.times) + bytes(following.times),
        )
        following.delete()
    assert not sealing._commit(stream.pk, built, "", None)
    assert text_of(stream) == text
    services.seal()
    assert text_of(stream) == text


def test_only_one_worker_seals_and_one_of_the_past_can_not(stream: Stream) -> None:
    finished(stream, 3000)
    other = leases.take(name="logs.seal", holder="other", ttl=timedelta(seconds=60))
    assert services.seal() == 0
    leases.release(name="logs.seal", holder="other")
    leases.take(name="logs.seal", holder="third", ttl=timedelta(seconds=60))
    with pytest.raises(leases.FencedOff):
        services.seal_stream(stream_id=stream.pk, fence=other)
    leases.release(name="logs.seal", holder="third")
    assert not Segment.objects.exists()
    assert services.seal() > 0


def test_a_segment_is_made_once_even_without_a_lease(stream: Stream) -> None:
    finished(stream, 3000)
    built = blocks.build(sealing._ready(stream))
    assert sealing._commit(stream.pk, built, "", None)
    assert not sealing._commit(stream.pk, built, "", None)
    assert Segment.objects.filter(stream=stream).count() == 1


def test_sealing_ends_with_its_time_and_goes_on_the_next_time(stream: Stream) -> None:
    text = finished(stream, 9000)
    rounds = 0
    while Stream.objects.filter(sealed_at__isnull=True).exists():
        services.seal(budget=0.02)
        rounds += 1
        assert text_of(stream) == text
        assert rounds < 200
    assert rounds > 1
    stream.refresh_from_db()
    assert stream.sha256 == hashlib.sha256(text).hexdigest()


def test_a_digest_goes_on_where_the_time_ended(stream: Stream) -> None:
    text = finished(stream, 9000)
    while sealing._move(stream.pk, None):
        pass
    rounds = 0
    while Stream.objects.filter(sealed_at__isnull=True).exists():
        # A deadline that is over: one portion at a time.
        sealing._finish(stream.pk, None, deadline=0.0)
        rounds += 1
    assert rounds > 5
    stream.refresh_from_db()
    assert stream.sha256 == hashlib.sha256(text).hexdigest()


def test_a_damaged_log_is_left_as_it_is_and_holds_nobody_up(job: Job, stream: Stream) -> None:
    finished(stream, 1000)
    other = factories.make_stream(job)
    finished(other, 1000)
    chunk = Chunk.objects.filter(stream=stream).order_by("first_line")[0]
    Chunk.objects.filter(pk=chunk.pk).update(data=bytes(chunk.data)[:-100])
    services.seal()
    stream.refresh_from_db()
    other.refresh_from_db()
    assert (stream.sealed_line, stream.sealed_at) == (1, None)
    assert other.sealed_at is not None


def test_people_who_look_are_told_of_the_digest(
    stream: Stream, django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(stream, 10)
    heard: list[bus.Message] = []
    monkeypatch.setattr(bus.hub(), "deliver", heard.append)
    with django_capture_on_commit_callbacks(execute=True):
        services.seal()
    stream.refresh_from_db()
    assert {"sha256": stream.sha256} in [dict(m.facts) for m in heard if m.topic == f"stream:{stream.pk}"]


@pytest.mark.parametrize("direction", ["content", "scan", "backwards"])
def test_a_reader_sees_no_hole_at_whatever_moment_lines_are_sealed(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    """Before each single question of a reader to the database, one more segment is sealed."""
    text = finished(stream, 9000)

    def sealing_before(verb: Any) -> Any:
        def asked(*given: Any, **named: Any) -> Any:
            sealing._move(stream.pk, None)
            return verb(*given, **named)

        return asked

    for module, name in (
        (chunks, "holding"),
        (chunks, "newest_before"),
        (segments, "holding"),
        (segments, "newest"),
    ):
        monkeypatch.setattr(module, name, sealing_before(getattr(module, name)))
    match direction:
        case "content":
            assert text_of(stream) == text
        case "scan":
            assert b"".join(data for _, data in store().scan(stream.pk)) == text
        case "backwards":
            assert b"".join([record.text for record in store().backwards(stream.pk)][::-1]) == text
    assert Segment.objects.filter(stream=stream).count() >= 2


@pytest.mark.django_db(transaction=True)
def test_readers_and_an_appender_beside_a_sealer_lose_and_double_nothing(stream: Stream) -> None:
    """Threads with connections of their own: one appends, one seals, two read the whole again and again."""
    records = training_lines(16_000, step_ns=SECOND // 100)
    whole = b"".join(record.text for record in records)
    done, faults = threading.Event(), []

    def thread(work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except Exception as error:  # told to the test, which fails of it
                faults.append(repr(error))
            finally:
                connection.close()

        started = threading.Thread(target=run)
        started.start()
        return started

    def seal() -> None:
        while not done.is_set():
            services.seal()

    def read() -> None:
        while not done.is_set():
            text = b"".join(store().content(stream.pk))
            if text != whole[: len(text)]:
                faults.append(f"{len(text)} bytes that are not the beginning of the log")
            back = b"".join([record.text for record in store().backwards(stream.pk)][::-1])
            if back != whole[: len(back)] or len(back) < len(text):
                faults.append(f"{len(back)} bytes backwards after {len(text)}")
            first = max(1, text.count(b"\n") // 2)
            page = selectors.lines(stream, first, 300)
            if [line.text.encode() for line in page.lines] != [r.text[:-1] for r in records[first - 1 : page.next - 1]]:
                faults.append(f"a page from line {first} to {page.next} that is not the log")

    threads = [thread(seal), thread(read), thread(read)]
    try:
        store_lines(stream, records, portion=180)
        services.complete(stream_id=stream.pk)
    finally:
        done.set()
        for each in threads:
            each.join(60)
    assert faults == []
    services.seal()
    stream.refresh_from_db()
    assert stream.sha256 == hashlib.sha256(whole).hexdigest()
    assert text_of(stream) == whole
