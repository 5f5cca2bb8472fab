"""A stored copy that is not what was sealed is told in a sentence, counted, and logged once; the rest can be read."""

import io
import logging
import tarfile
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from portal.core.errors import Corrupt, Gone
from portal.logs import damage as damages
from portal.logs import export, merged, search, selectors, services
from portal.logs.models import Chunk, Segment, Stream
from portal.logs.policy.patterns import pattern_of
from portal.logs.store import Damaged
from tests import factories
from tests.logs.stored import damage, sealed_lines, store_lines, training_lines
from tests.support.metrics import counted

WORDS = "stored copy is damaged; an administrator can see which with `manage.py check_logs`"
READS = "beamtime_log_damaged_reads_total"


@pytest.fixture(autouse=True)
def _nobody_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damages, "_told", {})


@pytest.fixture
def sealed(stream: Stream) -> Stream:
    """12,000 lines in about five blocks of one segment."""
    sealed_lines(stream, training_lines(12_000))
    return stream


def whole(stream: Stream) -> bytes:
    return b"".join(selectors.content(stream))


WAYS: dict[str, Callable[[Stream], Any]] = {
    "lines": lambda stream: selectors.lines(stream, 1, 10),
    "content": whole,
    "download": selectors.download,
    "search": lambda stream: search.search(stream, pattern_of("loss", regex=False, case=False), first=1),
    "backward": lambda stream: search.search(
        stream, pattern_of("nowhere", regex=False, case=False), first=12_000, direction="backward"
    ),
    "marks": lambda stream: search.marks(stream, pattern_of("loss", regex=False, case=False), first=1, end=9),
    "merged": lambda stream: merged.merged([stream], cursor=None, limit=10),
}


@pytest.mark.parametrize("way", WAYS)
def test_whichever_way_it_is_read_the_reader_is_told_what_it_is_and_who_can_look(way: str, sealed: Stream) -> None:
    damage(sealed)
    before = counted(READS)
    with pytest.raises(Corrupt, match=WORDS):
        WAYS[way](sealed)
    assert counted(READS) == before + 1


def test_the_operator_is_told_once_with_the_details(sealed: Stream, caplog: pytest.LogCaptureFixture) -> None:
    damage(sealed)
    with caplog.at_level(logging.ERROR, logger="portal"):
        for _ in range(3):
            with pytest.raises(Corrupt):
                selectors.lines(sealed, 1, 10)
    [record] = caplog.records
    assert str(sealed.pk) in record.getMessage()
    assert "lines 1 and following: a block cannot be decompressed" in record.getMessage()


def test_what_lies_beside_the_damage_can_be_read(sealed: Stream) -> None:
    damage(sealed, at=0.5)
    assert len(selectors.lines(sealed, 1, 1000).lines) == 1000
    assert selectors.tail(sealed, 200).lines[-1].n == 12_000
    # A failed job's page looks for its first error: it is not kept from the end of the log by what lies before that.
    assert search.opening_line(sealed) is None
    portions = selectors.download(sealed)

    got = []

    async def take_all() -> None:
        async for portion in portions:
            got.append(portion)

    with pytest.raises(Corrupt):
        async_to_sync(take_all)()
    assert 0 < sum(map(len, got)) < sealed.bytes


@pytest.mark.parametrize("way", WAYS)
def test_lines_that_are_not_there_are_damage_and_no_end(way: str, sealed: Stream) -> None:
    Segment.objects.filter(stream=sealed).delete()
    with pytest.raises(Corrupt, match=WORDS):
        WAYS[way](sealed)


def test_a_hole_behind_what_can_be_read_is_no_end_either(stream: Stream) -> None:
    store_lines(stream, training_lines(3000))
    last = Chunk.objects.filter(stream=stream).order_by("-first_line")[0]
    last.delete()
    found = search.search(stream, pattern_of("step 1/", regex=False, case=False), first=1, limit=1)
    assert found.hits == [1]
    with pytest.raises(Corrupt):
        search.search(stream, pattern_of("nowhere", regex=False, case=False), first=1)


def test_what_expires_while_it_is_read_has_expired_and_is_not_damaged(sealed: Stream) -> None:
    before = counted(READS)
    Stream.objects.filter(pk=sealed.pk).update(expired_at=sealed.sealed_at)
    with pytest.raises(Gone), damages.told(sealed.pk):
        raise Damaged("its segments go one by one")
    assert counted(READS) == before


def test_a_log_that_cannot_be_sealed_holds_up_no_other_and_is_counted(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    store_lines(stream, training_lines(3000))
    Chunk.objects.filter(stream=stream).order_by("first_line")[0].delete()
    services.complete(stream_id=stream.pk)
    before = counted(READS)
    with caplog.at_level(logging.ERROR, logger="portal"):
        services.seal()
        services.seal()
    assert counted(READS) == before + 2
    assert len(caplog.records) == 1


def test_a_damaged_log_does_not_cost_the_archive_the_others(sealed: Stream) -> None:
    damage(sealed, at=0.5)
    other = factories.make_stream(sealed.job)
    store_lines(other, training_lines(10))
    streams = list(selectors.streams_of(sealed.job))

    async def gathered() -> bytes:
        return b"".join([part async for part in export.archive(streams, folder="logs")])

    with tarfile.open(fileobj=io.BytesIO(async_to_sync(gathered)())) as archive:
        texts = {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]
    broken, whole_one, index = texts.values()
    assert len(broken) == sealed.bytes
    assert f"[{damages.WORDS}]".encode() in broken
    assert whole_one == whole(other)
    assert f"bytes are here. {damages.WORDS}" in index.decode()
