"""A log on a socket: backlog, then tail; each line exactly once, however often the connection breaks."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from portal.core import bus
from portal.core.clock import now
from portal.live import reads
from portal.live import socket as module
from portal.live.socket import WORDS, Close
from portal.logs import selectors, services
from portal.logs.models import Stream
from portal.logs.specs import Record
from tests import factories
from tests.live.conftest import Dial, House, Wire, cookie
from tests.logs.stored import damage, sealed_lines, training_lines
from tests.support.metrics import counted
from tests.watch.conftest import until

pytestmark = pytest.mark.asyncio


@pytest.fixture
def stream(house: House) -> Stream:
    return factories.make_stream(house.job)


@sync_to_async
def write(stream: Stream, *texts: str, open_text: str = "") -> None:
    stream.refresh_from_db()
    records = [Record(1_700_000_000_123_456_789 + n, text.encode() + b"\n") for n, text in enumerate(texts)]
    assert services.append(stream_id=stream.pk, first_line=stream.next_line, records=records, open_text=open_text)


@sync_to_async
def complete(stream: Stream) -> None:
    services.complete(stream_id=stream.pk)


async def listen(dial: Dial, house: House, stream: Stream, query: str = "") -> Wire:
    return await dial(f"/ws/v1/streams/{stream.pk}/{query}", await sync_to_async(cookie)(house.member))


async def lines(wire: Wire, count: int) -> list[list[Any]]:
    """The next lines; the frames must join without a hole."""
    found: list[list[Any]] = []
    while len(found) < count:
        frame = await wire.frame()
        if found:
            assert frame["from"] == found[-1][0] + 1
        assert [row[0] for row in frame["lines"]] == list(range(frame["from"], frame["to"]))
        found += frame["lines"]
    return found


async def test_backlog_then_tail_then_the_end(house: House, dial: Dial, stream: Stream) -> None:
    await write(stream, "one", "two")
    wire = await listen(dial, house, stream)
    assert await wire.frame() == {
        "type": "lines",
        "from": 1,
        "to": 3,
        "lines": [[1, 1_700_000_000_123, "one"], [2, 1_700_000_000_123, "two"]],
        "open": None,
        "complete": False,
    }
    await write(stream, "three")
    assert (await wire.frame())["lines"] == [[3, 1_700_000_000_123, "three"]]
    await complete(stream)
    last = await wire.frame()
    assert (last["from"], last["to"], last["lines"], last["complete"]) == (4, 4, [], True)
    assert await wire.code() == 1000


async def test_case_03_a_finished_log_after_a_dropped_socket_is_not_shown_twice(
    house: House, dial: Dial, stream: Stream
) -> None:
    await write(stream, *[f"line {n}" for n in range(1, 301)])
    await complete(stream)
    first = await listen(dial, house, stream)
    frame = await first.frame()
    shown = frame["lines"]
    await first.leave()
    again = await listen(dial, house, stream, f"?from={frame['to']}")
    last = await again.frame()
    assert (last["from"], last["to"], last["lines"], last["complete"]) == (301, 301, [], True)
    assert [row[0] for row in shown] == list(range(1, 301))


async def test_case_03_a_socket_that_drops_again_and_again_gets_each_line_once(
    house: House, dial: Dial, stream: Stream
) -> None:
    await write(stream, *[f"line {n}" for n in range(1, 1200)])
    got: list[list[Any]] = []
    position = 1
    while len(got) < 1199:
        wire = await listen(dial, house, stream, f"?from={position}")
        frame = await wire.frame()
        got += frame["lines"]
        position = frame["to"]
        await wire.leave()
    assert [row[2] for row in got] == [f"line {n}" for n in range(1, 1200)]


async def test_a_client_far_behind_gets_bounded_frames(house: House, dial: Dial, stream: Stream) -> None:
    await write(stream, *[f"{n}" for n in range(1, 3001)])
    wire = await listen(dial, house, stream)
    found = await lines(wire, 3000)
    assert [row[2] for row in found] == [str(n) for n in range(1, 3001)]
    assert max(len(frame["lines"]) for frame in wire.frames) == reads.FRAME_LINES
    assert await wire.is_silent()


async def test_long_lines_make_smaller_frames(house: House, dial: Dial, stream: Stream) -> None:
    await write(stream, *["x" * 20_000 for _ in range(100)])
    wire = await listen(dial, house, stream)
    assert len(await lines(wire, 100)) == 100
    assert len(wire.frames) > 2
    assert all(len(str(frame)) < 2 * reads.FRAME_BYTES for frame in wire.frames)


async def test_the_unfinished_line_changes_in_place(house: House, dial: Dial, stream: Stream) -> None:
    await write(stream, "start", open_text="10 %\r20 %")
    wire = await listen(dial, house, stream)
    assert (await wire.frame())["open"] == "20 %"
    await sync_to_async(services.set_open_text)(stream_id=stream.pk, next_line=2, text="10 %\r20 %\r30 %")
    changed = await wire.frame()
    assert (changed["from"], changed["to"], changed["lines"], changed["open"]) == (2, 2, [], "30 %")
    await write(stream, "10 %\r20 %\r30 %\r100 %")
    done = await wire.frame()
    assert (done["lines"][0][2], done["open"]) == ("100 %", None)


async def test_lines_announced_while_the_backlog_is_read_are_neither_lost_nor_doubled(
    house: House, dial: Dial, stream: Stream
) -> None:
    await write(stream, *[str(n) for n in range(1, 2001)])
    wire = await listen(dial, house, stream)

    async def go_on() -> None:
        for number in range(2001, 2101):
            await write(stream, str(number))

    writing = asyncio.create_task(go_on())
    found = await lines(wire, 2100)
    await writing
    assert [row[2] for row in found] == [str(n) for n in range(1, 2101)]


async def test_a_lost_announcement_is_made_up_for(
    house: House, dial: Dial, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECHECK", 0.2)
    wire = await listen(dial, house, stream)
    await wire.frame()
    monkeypatch.setattr(bus.hub(), "deliver", lambda _message: None)
    await write(stream, "nobody was told")
    assert (await wire.frame())["lines"][0][2] == "nobody was told"


async def test_viewers_of_one_log_share_one_query(
    house: House, dial: Dial, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookies = await sync_to_async(cookie)(house.member)
    wires = [await dial(f"/ws/v1/streams/{stream.pk}/", cookies) for _ in range(20)]
    for wire in wires:
        await wire.frame()
    real, asked = selectors.lines, []

    def counting(which: Stream, first: int, limit: int) -> object:
        asked.append(first)
        return real(which, first, limit)

    monkeypatch.setattr(selectors, "lines", counting)
    await write(stream, "for all")
    assert [(await wire.frame())["lines"][0][2] for wire in wires] == ["for all"] * 20
    assert len(asked) <= 5


async def test_one_viewer_leaving_takes_nothing_from_the_others(house: House, dial: Dial, stream: Stream) -> None:
    cookies = await sync_to_async(cookie)(house.member)
    wires = [await dial(f"/ws/v1/streams/{stream.pk}/", cookies) for _ in range(4)]
    for wire in wires:
        await wire.frame()
    await asyncio.gather(write(stream, "text"), wires[0].leave())
    assert [(await wire.frame())["lines"][0][2] for wire in wires[1:]] == ["text"] * 3


@pytest.mark.parametrize("start", ["0", "-1", "x", "1.5", "1e3", "9" * 30, f"{10**18}", "٣", ""])
async def test_a_start_that_is_no_line_number_is_refused(house: House, dial: Dial, stream: Stream, start: str) -> None:
    from urllib.parse import quote

    wire = await listen(dial, house, stream, f"?from={quote(start)}" if start else "?from=+")
    assert await wire.code() == 4400


async def test_a_start_beyond_the_end_is_the_end(house: House, dial: Dial, stream: Stream) -> None:
    await write(stream, "one")
    wire = await listen(dial, house, stream, "?from=999")
    frame = await wire.frame()
    assert (frame["from"], frame["to"]) == (2, 2)
    await write(stream, "two")
    assert (await wire.frame())["lines"][0][2] == "two"


async def test_case_13_markup_travels_as_text_and_a_nul_is_shown(house: House, dial: Dial, stream: Stream) -> None:
    text = "<script>alert(1)</script> \x1b[31m<img src=x onerror=alert(1)>\x1b[0m \x00"
    await write(stream, text)
    wire = await listen(dial, house, stream)
    assert (await wire.frame())["lines"][0][2] == text.replace("\0", "␀")


async def test_a_damaged_log_ends_the_socket_with_a_reason_and_no_new_try(
    house: House, dial: Dial, stream: Stream
) -> None:
    await sync_to_async(sealed_lines)(stream, training_lines(1000))
    await sync_to_async(damage)(stream)
    wire = await listen(dial, house, stream)
    assert await wire.code() == 4500
    assert wire.frames == []
    assert len(WORDS[Close.DAMAGED].encode()) <= 123, "a WebSocket's reason is no longer than that"


@sync_to_async
def expire(stream: Stream) -> str:
    """The text is given up, and its readers are told; returns the sentence that stands in its place."""
    Stream.objects.filter(pk=stream.pk).update(expired_at=now())
    bus.announce(f"stream:{stream.pk}", expired=True)
    return selectors.expired_words(Stream.objects.select_related("job__team__log_retention").get(pk=stream.pk))


@pytest.mark.parametrize("query", ["", "?skip=yes&from=1"])
async def test_case_43_an_expired_log_is_told_as_expired_and_never_as_an_empty_one(
    house: House, dial: Dial, stream: Stream, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """Whether it had expired before, or does while somebody listens."""
    monkeypatch.setattr(reads, "BEHIND_BYTES", 10)
    await write(stream, "one", "two")
    early = await listen(dial, house, stream, "?from=2")
    await early.frame()
    words = await expire(stream)
    late = await listen(dial, house, stream, query)
    for wire in (early, late):
        assert await wire.code() == 4410
        assert wire.reason == words
    assert late.frames == []


async def test_a_sentence_too_long_for_a_socket_is_a_short_one(house: House, dial: Dial, stream: Stream) -> None:
    await write(stream, "one")
    await sync_to_async(Stream.objects.filter(pk=stream.pk).update)(sha256="ab" * 32)
    assert len((await expire(stream)).encode()) > 123
    wire = await listen(dial, house, stream)
    assert (await wire.code(), wire.reason) == (4410, "This log has expired.")


async def test_the_operator_sees_who_listens_and_what_was_sent_and_skipped(
    house: House, dial: Dial, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("beamtime_live_skips_total", "beamtime_live_skipped_lines_total")

    def viewers() -> float:
        return counted("beamtime_live_viewers", transport="websocket", subject="log")

    others, before = viewers(), [counted(name) for name in names]
    sent = counted("beamtime_live_frames_total", transport="websocket")
    monkeypatch.setattr(reads, "BEHIND_BYTES", 5000)
    await write(stream, *[f"line {n:06}" for n in range(1, 3001)])
    wire = await listen(dial, house, stream, "?skip=yes&from=1")
    skipped = await wire.frame()
    assert skipped["type"] == "skipped"
    await wire.frame()
    assert viewers() == others + 1
    assert [counted(name) - was for name, was in zip(names, before, strict=True)] == [
        1, skipped["to"] - skipped["from"]
    ]  # fmt: skip
    assert counted("beamtime_live_frames_total", transport="websocket") - sent == 2
    await wire.leave()

    async def gone() -> bool:
        return viewers() == others

    await until(gone)
