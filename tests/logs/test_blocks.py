"""Compressed blocks: the very same lines come out, from wherever one reads."""

import contextlib
import hashlib
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.logs.policy import packs
from portal.logs.specs import Record
from portal.logs.store.blocks import (
    BLOCK_BYTES,
    BLOCK_LINES,
    Block,
    Built,
    Damaged,
    build,
    read_index,
    unpack_text,
    unpack_times,
)
from portal.logs.store.portion import Portion, lines_in, pack

TIMES = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(1_700_000_000 * 10**9, 1_700_000_001 * 10**9))
TEXTS = st.one_of(
    st.sampled_from([b"\n", b"short\n", b"x" * 5000 + b"\n", b"y" * 70_000 + b"\n", b"z" * 262_144, b"torn"]),
    st.binary(max_size=40).map(lambda text: text.replace(b"\n", b" ") + b"\n"),
)
RECORDS = st.lists(st.builds(Record, TIMES, TEXTS), min_size=1, max_size=60)


def portions_of(records: Sequence[Record], *, line: int = 1, byte: int = 0) -> list[Portion]:
    found = []
    for group in packs(records):
        found.append(pack(line, byte, group))
        line, byte = found[-1].end, byte + len(found[-1].data)
    return found


def unpacked(built: Built, block: Block) -> Portion:
    return Portion(
        built.first_line + block.line,
        block.lines,
        built.first_byte + block.byte,
        unpack_text(block, built.body),
        unpack_times(block, built.body),
    )


def blocks_of(built: Built) -> list[Block]:
    return read_index(built.index, lines=built.lines, size=built.size)


@given(RECORDS, st.integers(1, 10**12), st.integers(0, 10**12))
@settings(max_examples=80, deadline=None)
def test_whatever_goes_in_comes_out_line_by_line_and_byte_by_byte(records: list[Record], line: int, byte: int) -> None:
    built = build(portions_of(records, line=line, byte=byte))
    found = [unpacked(built, block) for block in blocks_of(built)]
    assert [record for portion in found for record in portion.records()] == records
    text = b"".join(record.text for record in records)
    assert b"".join(portion.data for portion in found) == text
    assert (built.first_line, built.lines, built.first_byte, built.size) == (line, len(records), byte, len(text))
    assert built.sha256 == hashlib.sha256(text).hexdigest()
    for portion in found:
        assert portion.lines == lines_in(portion.data)
        line, byte = line + portion.lines, byte + len(portion.data)
    assert (found[-1].end, found[-1].first_byte + len(found[-1].data)) == (line, byte)


@given(RECORDS, st.data())
@settings(max_examples=80, deadline=None)
def test_any_range_of_lines_is_cut_from_blocks_that_are_unpacked_alone(
    records: list[Record], data: st.DataObject
) -> None:
    built = build(portions_of(records))
    first = data.draw(st.integers(1, len(records)))
    end = data.draw(st.integers(first + 1, len(records) + 1))
    found = []
    for block in blocks_of(built):
        if block.line + 1 < end and block.line + 1 + block.lines > first:
            part = built.body[block.at : block.stop]
            times = unpack_times(block, part, block.at)
            portion = Portion(block.line + 1, block.lines, block.byte, unpack_text(block, part, block.at), times)
            cut = portion.between(first, end)
            assert cut.first_byte == sum(len(record.text) for record in records[: cut.first_line - 1])
            found += cut.records()
    assert found == records[first - 1 : end - 1]


@given(RECORDS)
@settings(max_examples=40, deadline=None)
def test_the_same_lines_make_the_same_segment(records: list[Record]) -> None:
    assert build(portions_of(records)) == build(portions_of(records))


def test_blocks_are_bounded_in_bytes_and_in_lines() -> None:
    wide = build(portions_of([Record(n, b"%d" % n * 30 + b"\n") for n in range(40_000)]))
    narrow = build(portions_of([Record(0, b"\n")] * 50_000))
    for built in (wide, narrow):
        assert all(block.size <= BLOCK_BYTES and block.lines <= BLOCK_LINES for block in blocks_of(built))
    assert len(blocks_of(wide)) > 10
    assert len(blocks_of(narrow)) == 4
    assert len(narrow.body) < 1000


def test_lines_that_do_not_follow_on_each_other_are_never_sealed() -> None:
    one, two = portions_of([Record(0, b"a\n" * 1)] * 500 + [Record(0, b"b\n")] * 3)
    for wrong in (
        [two, one],
        [one, two._replace(first_line=502)],
        [one, two._replace(first_byte=999)],
        [one, two._replace(lines=4)],
        [one._replace(times=one.times[8:]), two],
    ):
        with pytest.raises(Damaged):
            build(wrong)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_body_that_was_changed_is_found_out_or_is_the_same_text(data: st.DataObject) -> None:
    records = [Record(n, b"line %d of a log\n" % n) for n in range(300)]
    built = build(portions_of(records))
    place = data.draw(st.integers(0, len(built.body) - 1))
    body = bytearray(built.body)
    body[place] ^= data.draw(st.integers(1, 255))
    (block,) = blocks_of(built)
    if place < block.text_size:
        with contextlib.suppress(Damaged):
            assert unpack_text(block, bytes(body)) == b"".join(record.text for record in records)
    else:
        assert unpack_text(block, bytes(body)) == b"".join(record.text for record in records)


@pytest.mark.parametrize("index", [b"", b"\x02" + bytes(20), b"\x01" + bytes(19)])
def test_an_index_of_another_form_is_refused(index: bytes) -> None:
    with pytest.raises(Damaged):
        read_index(index, lines=1, size=1)


def test_times_of_a_steady_log_take_few_bytes() -> None:
    records = [Record(1_700_000_000_000_000_000 + n * 20_000_000, b"x\n") for n in range(5000)]
    (block,) = blocks_of(build(portions_of(records)))
    assert block.times_size < 200
    assert struct.calcsize("<5000q") == 40_000
