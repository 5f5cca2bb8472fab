"""Sealed lines in an S3-compatible object store: the same log, wherever it lies, and honest words when it is away."""

import hashlib
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from portal.core.clock import now
from portal.core.errors import Unavailable
from portal.jobs.models import State
from portal.logs import selectors, services
from portal.logs.models import Chunk, Segment, Stream
from portal.logs.services import sealing
from portal.logs.store import blocks, objects, store
from portal.teams.models import Team, User
from tests import factories
from tests.factories import Site
from tests.logs.s3 import BUCKET, S3Server
from tests.logs.stored import store_lines, training_lines
from tests.support.metrics import counted


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    made = S3Server()
    yield made
    made.close()


@pytest.fixture
def s3(server: S3Server, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """New segments go to the bucket, 256 KiB each."""
    settings.BEAMTIME_LOG_STORE = "s3"
    settings.BEAMTIME_S3_ENDPOINT, settings.BEAMTIME_S3_BUCKET = server.url, BUCKET
    settings.BEAMTIME_S3_ACCESS_KEY, settings.BEAMTIME_S3_SECRET_KEY = server.access_key, server.secret_key
    monkeypatch.setattr(sealing, "SEGMENT_BYTES", 256 * 1024)
    monkeypatch.setattr(sealing, "_KEPT_BYTES", 300 * 1024)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 100 * 1024)
    monkeypatch.setattr(objects, "_READ", 0.5)
    objects.shelf.cache_clear()
    yield server
    server.thaw()
    objects.shelf.cache_clear()


def finished(stream: Stream, number: int = 9000) -> bytes:
    text = store_lines(stream, training_lines(number))
    services.complete(stream_id=stream.pk)
    stream.refresh_from_db()
    return text


def text_of(stream: Stream) -> bytes:
    return b"".join(selectors.content(stream))


def test_a_log_in_the_object_store_reads_as_one_in_the_database(stream: Stream, s3: S3Server) -> None:
    text = finished(stream)
    services.seal()
    stream.refresh_from_db()
    assert stream.sha256 == hashlib.sha256(text).hexdigest()
    assert not Chunk.objects.filter(stream=stream).exists()
    rows = Segment.objects.filter(stream=stream)
    assert all(row.data is None and row.key.startswith(f"logs/{stream.pk}/") for row in rows)
    assert sorted(row.key for row in rows) == sorted(key for key in s3.names() if str(stream.pk) in key)
    assert text_of(stream) == text
    page = selectors.lines(stream, 4321, 50)
    assert [line.text.encode() for line in page.lines] == [r.text[:-1] for r in training_lines(50, first=4321)]
    assert [record.text for record in store().backwards(stream.pk)] == text.splitlines(keepends=True)[::-1]


def test_one_line_fetches_one_block(stream: Stream, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(stream)
    services.seal()
    fetched: list[int] = []
    real = objects.S3Shelf.get

    def get(self: Any, key: str, *, at: int, size: int) -> bytes:
        fetched.append(size)
        return real(self, key, at=at, size=size)

    monkeypatch.setattr(objects.S3Shelf, "get", get)
    selectors.lines(stream, 4321, 1)
    ((size,), segment) = (fetched, Segment.objects.filter(stream=stream, first_line__lte=4321).last())
    assert segment is not None
    assert size in {
        b.stop - b.at for b in blocks.read_index(bytes(segment.index), lines=segment.lines, size=segment.bytes)
    }


def test_a_site_may_change_its_store_and_old_logs_are_still_read(stream: Stream, s3: S3Server, settings: Any) -> None:
    records = training_lines(12_000)
    store_lines(stream, records)
    services.seal()
    settings.BEAMTIME_LOG_STORE = "database"
    services.complete(stream_id=stream.pk)
    services.seal()
    places = list(Segment.objects.filter(stream=stream).values_list("key", flat=True))
    assert any(places)
    assert not all(places)
    assert text_of(stream) == b"".join(record.text for record in records)


def test_what_a_last_read_is_compared_with_stays_in_the_database(stream: Stream, s3: S3Server) -> None:
    store_lines(stream, training_lines(12_000))
    services.seal()
    stream.refresh_from_db()
    assert stream.sealed_line > 1
    assert stream.bytes - stream.sealed_bytes >= 300 * 1024


def test_what_was_put_and_not_written_down_is_put_again_under_the_same_name(
    stream: Stream, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = finished(stream, 2000)
    with monkeypatch.context() as patch:
        patch.setattr(sealing, "_commit", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            services.seal_stream(stream_id=stream.pk)
    orphans = [key for key in s3.names() if str(stream.pk) in key]
    assert len(orphans) == 1
    assert text_of(stream) == text
    services.seal()
    assert [key for key in s3.names() if str(stream.pk) in key] == orphans
    assert text_of(stream) == text


def test_while_the_object_store_is_away_nothing_is_lost_and_sealing_tries_again(stream: Stream, s3: S3Server) -> None:
    text = finished(stream)
    s3.freeze()
    assert services.seal() == 0
    stream.refresh_from_db()
    assert (stream.sealed_line, Segment.objects.count()) == (1, 0)
    assert text_of(stream) == text
    s3.thaw()
    assert services.seal() > 2
    assert text_of(stream) == text


def test_readers_are_told_what_is_away_and_soon(
    stream: Stream, s3: S3Server, member: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = training_lines(12_000)
    store_lines(stream, records)
    services.seal()
    stream.refresh_from_db()
    client = APIClient()
    client.force_authenticate(member)
    s3.freeze()
    began = time.monotonic()
    with pytest.raises(Unavailable, match="does not answer"):
        selectors.lines(stream, 1, 10)
    answer = client.get(f"/api/v1/streams/{stream.pk}/lines/?from=1")
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
    assert "object store" in answer.json()["detail"]
    assert time.monotonic() - began < 15
    # The newest lines are still in the database, for people and for a reader that resumes; new ones come in.
    assert selectors.lines(stream, stream.sealed_line, 1).lines[0].n == stream.sealed_line
    assert next(selectors.newest_first(stream.pk)) == records[-1]
    store_lines(stream, training_lines(100, first=12_001))
    s3.thaw()
    assert len(selectors.lines(stream, 1, 10).lines) == 10


def test_a_download_that_cannot_go_on_breaks_off_and_never_ends_as_if_it_were_whole(
    stream: Stream, s3: S3Server
) -> None:
    text = finished(stream)
    services.seal()
    portions = selectors.content(stream)
    assert text.startswith(next(portions))
    s3.freeze()
    with pytest.raises(Unavailable):
        b"".join(portions)


def test_an_object_that_is_gone_or_short_is_no_empty_log(stream: Stream, s3: S3Server) -> None:
    finished(stream, 2000)
    services.seal()
    segment = Segment.objects.get(stream=stream)
    s3.client().put_object(Bucket=BUCKET, Key=segment.key, Body=b"short")
    with pytest.raises(Unavailable):
        selectors.lines(stream, 1, 10)
    s3.client().delete_object(Bucket=BUCKET, Key=segment.key)
    with pytest.raises(Unavailable):
        text_of(stream)


def test_a_wrong_secret_is_refused_and_the_lines_stay(stream: Stream, s3: S3Server, settings: Any) -> None:
    text = finished(stream, 2000)
    settings.BEAMTIME_S3_SECRET_KEY = "wrong"
    objects.shelf.cache_clear()
    assert services.seal() == 0
    assert text_of(stream) == text
    with pytest.raises(Unavailable):
        objects.shelf().put(uuid4(), 1, b"x")


def test_a_port_where_nothing_listens_is_noticed_at_once(stream: Stream, s3: S3Server, settings: Any) -> None:
    settings.BEAMTIME_S3_ENDPOINT = "http://127.0.0.1:9"
    objects.shelf.cache_clear()
    began = time.monotonic()
    with pytest.raises(Unavailable):
        objects.shelf().get("logs/x", at=0, size=1)
    assert time.monotonic() - began < 5


def test_all_of_a_stream_is_deleted_and_nothing_else(s3: S3Server) -> None:
    shelf, one, other = objects.shelf(), uuid4(), uuid4()
    for line in range(1, 8):
        shelf.put(one, line, b"one %d" % line)
    key = shelf.put(other, 1, b"another")
    shelf.delete(one)
    assert [name for name in s3.names() if str(one) in name or str(other) in name] == [key]
    assert shelf.get(key, at=2, size=3) == b"oth"
    shelf.delete(one)


def expired(site: Site, people: tuple[Team, User], *, segments: int) -> Stream:
    """The log of a job that ended nine days ago, sealed into about so many segments; none: still in chunks."""
    job = factories.make_job(*people, site.cpu, state=State.SUCCEEDED, ended_at=now() - timedelta(days=9))
    stream = factories.make_stream(job)
    store_lines(stream, training_lines(2500 * max(segments, 1)))
    services.complete(stream_id=stream.pk)
    if segments:
        services.seal_stream(stream_id=stream.pk)
    return stream


def test_while_the_object_store_is_away_expired_text_in_the_database_goes_all_the_same(
    s3: S3Server, site: Site, team: Team, member: User, settings: Any
) -> None:
    far = [expired(site, (team, member), segments=1) for _ in range(3)]
    settings.BEAMTIME_LOG_STORE = "database"
    here, chunks = expired(site, (team, member), segments=1), expired(site, (team, member), segments=0)
    settings.BEAMTIME_LOG_STORE, settings.BEAMTIME_LOG_RETENTION_DAYS = "s3", 7
    faults = counted("beamtime_object_store_faults_total")
    s3.freeze()
    assert services.expire() == 5
    assert not Chunk.objects.exists()
    assert not Segment.objects.filter(stream__in=[here, chunks]).exists()
    # The first that it does not answer for is the last that it is asked about.
    assert counted("beamtime_object_store_faults_total") == faults + 1
    assert Stream.objects.filter(purged_at__isnull=True).count() == 5
    settings.BEAMTIME_LOG_STORE = "database"
    services.expire()
    # Who has never had anything there need not wait for it.
    assert set(Stream.objects.filter(purged_at__isnull=True)) == set(far)
    s3.thaw()
    services.expire()
    assert not Stream.objects.filter(purged_at__isnull=True).exists()
    assert not Segment.objects.exists()
    assert [key for key in s3.names() if any(str(stream.pk) in key for stream in far)] == []


def test_deleting_much_from_the_object_store_ends_with_the_time_and_goes_on_with_the_next_call(
    s3: S3Server, site: Site, team: Team, member: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = expired(site, (team, member), segments=4)
    settings.BEAMTIME_LOG_RETENTION_DAYS = 7
    ask, clock, deleted = objects.S3Shelf._ask, [time.monotonic()], []

    def slowly(shelf: objects.S3Shelf, verb: str, **what: Any) -> Any:
        if verb == "delete_object":
            deleted.append(what["Key"])
            clock[0] += 20
        return ask(shelf, verb, **what)

    monkeypatch.setattr(objects.S3Shelf, "_ask", slowly)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    services.expire(budget=30)
    assert len(deleted) == 2
    assert Stream.objects.get(pk=stream.pk).purged_at is None
    services.expire(budget=1000)
    assert len(deleted) == len(set(deleted)) > 3
    assert Stream.objects.get(pk=stream.pk).purged_at is not None
