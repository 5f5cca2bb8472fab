"""Storing lines: each once, in order, under a number that never changes."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.clusters.specs import ContainerRef
from portal.core import bus, leases
from portal.jobs.models import Job
from portal.logs import selectors, services
from portal.logs.models import Chunk, Stream
from portal.logs.policy import CHUNK_BYTES, CHUNK_LINES, LINE_BYTES
from portal.logs.specs import Record
from tests import factories


def records(*texts: bytes, start: int = 0) -> list[Record]:
    return [Record(1_000_000_000 * (start + n), text) for n, text in enumerate(texts)]


def text_of(stream: Stream) -> bytes:
    return b"".join(selectors.content(stream))


def test_lines_are_numbered_from_one_and_keep_their_bytes_and_times(stream: Stream) -> None:
    assert services.append(stream_id=stream.pk, first_line=1, records=records(b"one\n", b"\n", b"three\x00\xff\n"))
    page = selectors.lines(stream, 1, 10)
    assert [tuple(line) for line in page.lines] == [
        (1, 0, "one"),
        (2, 1_000_000_000, ""),
        (3, 2_000_000_000, "three\0\N{REPLACEMENT CHARACTER}"),
    ]
    assert (page.first, page.next, page.complete) == (1, 4, False)
    assert text_of(stream) == b"one\n\nthree\x00\xff\n"
    stream.refresh_from_db()
    assert (stream.next_line, stream.bytes, stream.last_time_ns) == (4, 13, 2_000_000_000)


def test_the_same_lines_again_are_refused_and_change_nothing(stream: Stream) -> None:
    assert services.append(stream_id=stream.pk, first_line=1, records=records(b"one\n", b"two\n"))
    assert not services.append(stream_id=stream.pk, first_line=1, records=records(b"one\n", b"two\n"))
    assert not services.append(stream_id=stream.pk, first_line=4, records=records(b"later\n"))
    assert text_of(stream) == b"one\ntwo\n"
    assert services.append(stream_id=stream.pk, first_line=3, records=records(b"three\n"))
    assert text_of(stream) == b"one\ntwo\nthree\n"


@given(
    portions=st.lists(
        st.lists(
            st.sampled_from([b"\n", b"a\n", b"x" * 3000 + b"\n", b"y" * 100_000 + b"\n", b"torn"]),
            min_size=1,
            max_size=30,
        ),
        max_size=12,
    )
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_however_the_lines_come_they_read_the_same(job: Job, portions: list[list[bytes]]) -> None:
    stream = factories.make_stream(job)
    everything: list[bytes] = []
    for texts in portions:
        portion = records(*texts, start=len(everything))
        assert services.append(stream_id=stream.pk, first_line=len(everything) + 1, records=portion)
        everything += texts
    assert text_of(stream) == b"".join(everything)
    page = selectors.lines(stream, 1, 5000)
    assert [line.n for line in page.lines] == list(range(1, len(page.lines) + 1))
    assert [line.text.encode() for line in page.lines] == [text.rstrip(b"\n") for text in everything[: len(page.lines)]]
    for chunk in Chunk.objects.filter(stream=stream):
        assert chunk.lines <= CHUNK_LINES
        assert chunk.lines == 1 or len(chunk.data) <= CHUNK_BYTES
    assert [record.text for record in selectors.newest_first(stream.pk)] == everything[::-1]


def test_lines_that_come_one_by_one_are_kept_in_few_chunks(stream: Stream) -> None:
    for number in range(1, 501):
        services.append(stream_id=stream.pk, first_line=number, records=[Record(number, b"line %d\n" % number)])
    assert Chunk.objects.filter(stream=stream).count() < 12
    assert text_of(stream) == b"".join(b"line %d\n" % number for number in range(1, 501))


@pytest.mark.parametrize("text", [b"", b"two\nlines\n", b"x" * (LINE_BYTES + 1)])
def test_what_is_not_one_line_is_a_fault_of_the_caller(stream: Stream, text: bytes) -> None:
    with pytest.raises(ValueError, match="not one line"):
        services.append(stream_id=stream.pk, first_line=1, records=[Record(0, text)])
    assert text_of(stream) == b""


def test_a_leader_of_the_past_can_no_longer_write(stream: Stream) -> None:
    old = leases.take(name="watch:default", holder="old", ttl=timedelta(seconds=30))
    leases.release(name="watch:default", holder="old")
    new = leases.take(name="watch:default", holder="new", ttl=timedelta(seconds=30))
    with pytest.raises(leases.FencedOff):
        services.append(stream_id=stream.pk, first_line=1, records=records(b"late\n"), fence=old)
    assert services.append(stream_id=stream.pk, first_line=1, records=records(b"now\n"), fence=new)
    assert text_of(stream) == b"now\n"


def test_the_unfinished_line_is_shown_in_its_last_state_and_is_no_line_yet(stream: Stream) -> None:
    assert services.append(stream_id=stream.pk, first_line=1, records=records(b"a\n"), open_text="10 %\r20 %")
    assert services.set_open_text(stream_id=stream.pk, next_line=2, text="10 %\r20 %\r30\0")
    page = selectors.lines(stream, 1, 10)
    assert (page.open_text, [line.text for line in page.lines]) == ("30␀", ["a"])
    assert not services.set_open_text(stream_id=stream.pk, next_line=1, text="late")
    assert selectors.lines(stream, 1, 10).open_text == "30␀"


def test_readers_are_told_after_the_commit(
    stream: Stream, django_capture_on_commit_callbacks: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[bus.Message] = []
    monkeypatch.setattr(bus.hub(), "deliver", heard.append)
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        services.append(stream_id=stream.pk, first_line=1, records=records(b"a\n"))
        assert heard == []
    assert [(message.topic, dict(message.facts)) for message in heard] == [(f"stream:{stream.pk}", {"next_line": 2})]


def test_a_stream_is_one_container_in_one_life(job: Job) -> None:
    ref = ContainerRef(cluster="default", namespace="bt-vision", pod="p", pod_uid="u", container="main", restart=0)
    first = services.open_stream(job_id=job.pk, attempt_number=1, ref=ref, pod_index=3)
    assert services.open_stream(job_id=job.pk, attempt_number=1, ref=ref, pod_index=3) == first
    second_life = ContainerRef(**{**{n: getattr(ref, n) for n in ref.__slots__}, "restart": 1})
    assert services.open_stream(job_id=job.pk, attempt_number=1, ref=second_life) != first
    assert list(selectors.streams_of(job)) != []
    assert first.pod_index == 3
