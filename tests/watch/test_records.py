"""Bytes of the log endpoint become the same lines, however they are cut on their way."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from portal.logs.policy import LINE_BYTES
from portal.logs.policy.stamps import stamp
from portal.logs.specs import Record
from portal.watch.records import Parser

NOON = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()) * 1_000_000_000
HEAD = b"2026-11-30T12:00:00.000000000Z "


def endpoint(*lines: tuple[int, bytes]) -> bytes:
    """What the endpoint sends for (nanoseconds after noon, text) pairs."""
    return b"".join(
        b"2026-11-30T12:%02d:%02d.%09dZ " % (ns // 60_000_000_000 % 60, ns // 1_000_000_000 % 60, ns % 1_000_000_000)
        + text
        for ns, text in lines
    )


def parse(data: bytes, sizes: list[int], *, resumed: bool = False, last_ns: int | None = None) -> list[Record]:
    """The records of a read in portions of the given sizes, over and over."""
    parser = Parser(resumed=resumed, last_ns=last_ns)
    found: list[Record] = []
    position = turn = 0
    while position < len(data):
        size = sizes[turn % len(sizes)]
        found += parser.feed(data[position : position + size])
        position, turn = position + size, turn + 1
    return [*found, *parser.finish()]


texts = st.one_of(
    st.binary(max_size=60).map(lambda text: text.replace(b"\n", b"")),
    st.sampled_from([b"", b"\r", b"50 %\r100 %", b"\x00\xff\xfe", "Grüße, 世界 🚀".encode(), HEAD, b"2026-11-30T"]),
)


@given(
    lines=st.lists(st.tuples(st.integers(0, 3_599_999_999_999), texts), max_size=12),
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    ends=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_any_cut_of_the_bytes_gives_the_same_lines(
    lines: list[tuple[int, bytes]], sizes: list[int], ends: bool
) -> None:
    data = endpoint(*[(ns, text + b"\n") for ns, text in lines])
    expected = [Record(NOON + ns, text + b"\n") for ns, text in lines]
    if not ends and lines and lines[-1][1]:
        data = data[:-1]
        expected[-1] = Record(expected[-1].time_ns, lines[-1][1])
    assert parse(data, sizes) == expected
    assert parse(data, [len(data) + 1]) == expected


def test_case_07_a_character_across_two_reads_is_the_same_character_for_every_size_of_read() -> None:
    # The two-byte "ü" lies at bytes 4094 and 4095 of the text, right before the end of a read of 4,096 bytes.
    text = b"x" * (4094 - len(HEAD)) + "ü und 世界 🚀".encode() + b"\n"
    data = endpoint((0, text)) + endpoint((1, "ß\n".encode()))
    whole = parse(data, [len(data)])
    assert [record.text.decode() for record in whole] == [text.decode(), "ß\n"]
    for size in [*range(1, 9), *range(4090, 4100)]:
        assert parse(data, [size]) == whole, size


@pytest.mark.parametrize(
    ("head", "seconds", "nanos"),
    [
        (b"2026-11-30T12:00:00.000000001Z ", 0, 1),
        (b"2026-11-30T12:00:00.5Z ", 0, 500_000_000),
        (b"2026-11-30T12:00:00Z ", 0, 0),
        (b"2026-11-30T13:30:00.123456789+01:30 ", 0, 123_456_789),
        (b"2026-11-30T07:00:01.000000000-05:00 ", 1, 0),
    ],
)
def test_every_form_of_a_time_is_understood(head: bytes, seconds: int, nanos: int) -> None:
    assert stamp(head + b"text\n") == (NOON + seconds * 1_000_000_000 + nanos, len(head))


@pytest.mark.parametrize("text", [b"", b"hello\n", b"2026-13-30T12:00:00.000000001Z x\n", b"2026-11-30 12:00:00Z x\n"])
def test_what_is_no_time_is_text(text: bytes) -> None:
    assert stamp(text) is None


def test_an_empty_line_is_a_line() -> None:
    assert parse(endpoint((0, b"\n"), (1, b"a\n")), [3]) == [Record(NOON, b"\n"), Record(NOON + 1, b"a\n")]


def test_the_rest_of_a_line_whose_start_was_skipped_is_not_taken_for_a_line() -> None:
    data = b"the end of a long line\n" + endpoint((5, b"new\n"))
    assert parse(data, [7], resumed=True, last_ns=NOON) == [Record(NOON + 5, b"new\n")]
    long = b"x" * (3 * LINE_BYTES) + b"\n" + endpoint((5, b"new\n"))
    assert parse(long, [10_000], resumed=True, last_ns=NOON) == [Record(NOON + 5, b"new\n")]


@given(
    lines=st.lists(st.tuples(st.integers(0, 3_599_999_999_999), texts), min_size=1, max_size=12),
    torn=st.integers(0, 11),
)
@settings(max_examples=100, deadline=None)
def test_one_odd_line_among_plain_ones_changes_no_other(lines: list[tuple[int, bytes]], torn: int) -> None:
    plain = [endpoint((ns, text + b"\n")) for ns, text in lines]
    at = torn % (len(plain) + 1)
    data = b"".join([*plain[:at], b"2026-11-30T12:00:00.5Z odd\n", *plain[at:]])
    expected = [Record(NOON + ns, text + b"\n") for ns, text in lines]
    expected.insert(at, Record(NOON + 500_000_000, b"odd\n"))
    assert parse(data, [len(data)]) == parse(data, [5]) == expected


def test_text_without_a_time_in_the_middle_keeps_its_place() -> None:
    data = endpoint((5, b"a\n")) + b"failed to watch the file\n" + endpoint((6, b"b\n"))
    assert parse(data, [11]) == [
        Record(NOON + 5, b"a\n"),
        Record(NOON + 5, b"failed to watch the file\n"),
        Record(NOON + 6, b"b\n"),
    ]


@given(
    length=st.integers(LINE_BYTES - 5, 3 * LINE_BYTES),
    bar=st.booleans(),
    size=st.sampled_from([1000, 4096, 65_536, 10_000_000]),
)
@example(length=LINE_BYTES, bar=False, size=4096)
@example(length=LINE_BYTES + 1, bar=False, size=4096)
@settings(max_examples=25, deadline=None)
def test_an_endless_line_is_cut_at_the_same_places_and_loses_nothing(length: int, bar: bool, size: int) -> None:
    unit = b"\r 50 % |####    | step 100" if bar else "ä€🚀".encode()
    text = (unit * (length // len(unit) + 1))[:length] + b"\n"
    data = endpoint((7, text), (8, b"after\n"))
    *long, after = parse(data, [size])
    assert b"".join(record.text for record in long) == text
    assert {record.time_ns for record in long} == {NOON + 7}
    assert all(len(record.text) <= LINE_BYTES + 1 for record in long)
    assert after == Record(NOON + 8, b"after\n")
    assert [*long, after] == parse(data, [len(data)])
    if bar:
        assert all(record.text.endswith(b"\r") for record in long[:-1])
    elif length % len(unit) == 0:
        assert all(record.text.decode() for record in long)


def test_the_unfinished_line_is_seen_as_it_grows() -> None:
    parser = Parser(resumed=False, last_ns=None)
    assert list(parser.feed(HEAD[:10])) == []
    assert parser.open_text == ""
    parser.feed(HEAD[10:] + b" 10 %\r 20 %")
    assert parser.open_text == " 10 %\r 20 %"
    parser.feed(b"\rGr" + "ü".encode()[:1])
    assert parser.open_text == " 10 %\r 20 %\rGr"
    assert [record.text for record in parser.feed("ü".encode()[1:] + b"\n")] == [" 10 %\r 20 %\rGrü\n".encode()]
    assert parser.open_text == ""
