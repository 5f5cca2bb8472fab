"""`manage.py check_logs`: finds every log that is not what was sealed, and names it."""

import io
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command

from portal.jobs.models import Job
from portal.logs import services
from portal.logs.models import Chunk, Segment, Stream
from tests import factories
from tests.logs.stored import store_lines, training_lines


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.logs.services.sealing.SEGMENT_BYTES", 256 * 1024)


@pytest.fixture
def sealed(stream: Stream) -> Stream:
    store_lines(stream, training_lines(6000))
    services.complete(stream_id=stream.pk)
    services.seal()
    stream.refresh_from_db()
    return stream


def check(*options: str) -> tuple[int, str]:
    out = io.StringIO()
    try:
        call_command("check_logs", *options, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


def test_sound_logs_are_counted_and_nothing_else_is_said(sealed: Stream, job: Job) -> None:
    going_on = factories.make_stream(job)
    store_lines(going_on, training_lines(8000))
    services.seal()
    factories.make_stream(job)
    assert Segment.objects.filter(stream=going_on).exists()
    assert check() == (0, "3 logs, 1 sealed: 0 differ, 0 could not be read.\n")
    assert check("--team", "vision", "--repair", "no")[0] == 0


def first_segment(stream: Stream) -> Segment:
    found = Segment.objects.filter(stream=stream).order_by("first_line").first()
    assert found is not None
    return found


def change_body(stream: Stream) -> None:
    segment = first_segment(stream)
    body = bytearray(bytes(segment.data or b""))
    body[len(body) // 3] ^= 1
    Segment.objects.filter(pk=segment.pk).update(data=bytes(body))


def swap_bodies(stream: Stream) -> None:
    one, two = Segment.objects.filter(stream=stream).order_by("first_line")[:2]
    Segment.objects.filter(pk=one.pk).update(data=two.data, index=two.index)


def lose_segment(stream: Stream) -> None:
    Segment.objects.filter(stream=stream).order_by("first_line")[1].delete()


def lose_digest(stream: Stream) -> None:
    Stream.objects.filter(pk=stream.pk).update(sha256="0" * 64)


def count_wrongly(stream: Stream) -> None:
    Stream.objects.filter(pk=stream.pk).update(next_line=stream.next_line + 1)


def store_twice(stream: Stream) -> None:
    segment = first_segment(stream)
    Chunk.objects.create(stream=stream, first_line=2, lines=1, first_byte=0, data=b"x\n", times=bytes(8))
    assert segment.lines > 2


@pytest.mark.parametrize("harm", [change_body, swap_bodies, lose_segment, lose_digest, count_wrongly, store_twice])
def test_whatever_is_changed_is_found_and_named(sealed: Stream, job: Job, harm: Callable[[Stream], None]) -> None:
    sound = factories.make_stream(job)
    store_lines(sound, training_lines(100))
    harm(sealed)
    status, said = check()
    assert status == 1
    assert str(sealed.pk) in said
    assert str(job.pk) in said
    assert str(sound.pk) not in said
    assert "1 differ" in said


def test_a_chunk_that_is_missing_is_found_too(stream: Stream) -> None:
    store_lines(stream, training_lines(3000))
    Chunk.objects.filter(stream=stream).order_by("first_line")[2].delete()
    status, said = check()
    assert status == 1
    assert "are missing" in said


def test_only_the_team_that_was_asked_for(sealed: Stream) -> None:
    lose_digest(sealed)
    factories.make_user("x")
    assert check("--team", "vision")[0] == 1
    with pytest.raises(CommandError, match="no team nobody"):
        check("--team", "nobody")


def test_an_expired_log_has_nothing_to_check(sealed: Stream, team: object) -> None:
    Stream.objects.filter(pk=sealed.pk).update(expired_at="2026-01-01T00:00:00Z", purged_at="2026-01-01T00:00:00Z")
    status, said = check()
    assert status == 1
    assert "still there" in said
    Segment.objects.all().delete()
    assert check()[0] == 0
