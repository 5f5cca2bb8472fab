"""A log that is read again goes on exactly behind what is stored."""

import tracemalloc
from array import array
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.logs import selectors
from portal.logs.models import Cause
from portal.logs.specs import Batch, Loss, Record
from portal.watch import history
from portal.watch.overlap import Overlap, Stored, key_of

# Few times and few texts, so that lines with equal times and even equal lines are common.
lines = st.lists(st.builds(Record, st.integers(0, 3), st.sampled_from([b"a\n", b"b\n", b"\n"])), max_size=12)


def unique(number: int, start: int = 0) -> list[Record]:
    return [Record(1000, b"line %d\n" % n) for n in range(start, start + number)]


def spread(number: int) -> list[Record]:
    """Two lines at each time."""
    return [Record(1000 + n // 2, b"line %d\n" % n) for n in range(number)]


def read(stored: list[Record], again: list[Record], size: int = 3) -> tuple[list[Record], bool]:
    overlap = Overlap(tail(stored))
    found: list[Record] = []
    for position in range(0, len(again), size):
        found += overlap.new(Batch.of(again[position : position + size]))
    return found, bool(overlap.missing)


def tail(stored: list[Record], first_line: int = 1) -> Stored:
    return Stored(array("Q", map(key_of, stored)), first_line, None, max((each.time_ns for each in stored), default=0))


@given(stored=lines, new=lines, size=st.integers(1, 5))
@settings(max_examples=300, deadline=None)
def test_a_read_that_repeats_what_is_stored_adds_exactly_the_rest(
    stored: list[Record], new: list[Record], size: int
) -> None:
    assert read(stored, stored + new, size) == (new, False)


@given(cut=st.integers(0, 40), size=st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_after_a_rotation_the_read_begins_within_what_is_stored(cut: int, size: int) -> None:
    everything = unique(50)
    assert read(everything[:40], everything[min(cut, 39) :], size) == (everything[40:], False)


def test_5000_lines_of_one_second_cut_in_the_middle_are_neither_doubled_nor_lost() -> None:
    everything = unique(5000)
    assert read(everything[:2500], everything, 1000) == (everything[2500:], False)


def test_two_lines_with_one_time_and_the_cut_between_them() -> None:
    first, second = Record(7, b"same time\n"), Record(7, b"same time too\n")
    assert read([first], [first, second]) == ([second], False)


def test_two_equal_lines_and_the_cut_between_them() -> None:
    line = Record(7, b"again\n")
    assert read([line], [line, line]) == ([line], False)


def test_a_read_that_does_not_reach_back_far_enough_is_a_declared_gap() -> None:
    everything = spread(50)
    assert read(everything[:20], everything[30:]) == (everything[30:], True)


def test_lines_left_out_in_the_middle_are_declared_there_and_those_behind_them_are_not_doubled() -> None:
    everything = spread(50)
    overlap = Overlap(tail(everything[:20] + everything[30:40], first_line=101))
    assert list(overlap.new(Batch.of(everything))) == everything[40:]
    size = sum(len(each.text) for each in everything[20:30])
    assert overlap.missing == [Loss(121, Cause.SKIPPED, everything[19].time_ns, everything[30].time_ns, 10, size)]


def test_a_read_of_the_last_file_begins_behind_much_of_what_is_stored() -> None:
    everything = spread(50)
    assert read(everything[:40], everything[25:]) == (everything[40:], False)


def test_a_file_sent_three_times_is_still_stored_once() -> None:
    everything = spread(50)
    assert read(everything[:40], everything[30:35] + everything[30:38] + everything[30:]) == (everything[40:], False)


def test_an_empty_last_file_is_a_declared_gap_unless_the_end_was_seen() -> None:
    overlap = Overlap(tail(spread(5)))
    assert not overlap.finish(whole=True)
    assert overlap.missing == [Loss(6, Cause.ROTATED, after_ns=spread(5)[-1].time_ns)]


@given(
    total=st.integers(1, 60),
    holes=st.sets(st.integers(0, 59)),
    begin=st.integers(0, 59),
    kept=st.integers(1, 60),
    size=st.integers(1, 7),
)
@settings(max_examples=300, deadline=None)
def test_whatever_is_missing_nothing_is_doubled_and_every_missing_line_lies_in_a_gap(
    total: int, holes: set[int], begin: int, kept: int, size: int
) -> None:
    everything = spread(total)
    stored = [record for n, record in enumerate(everything[:kept]) if n not in holes]
    file = everything[min(begin, total - 1) :]
    overlap = Overlap(tail(stored))
    found: list[Record] = []
    for position in range(0, len(file), size):
        found += overlap.new(Batch.of(file[position : position + size]))
    found += overlap.finish(whole=True)
    assert [*stored, *found] == sorted({*stored, *found})
    bounds = [(gap.after_ns or 0, gap.until_ns or 10**9) for gap in overlap.missing]
    for record in file:
        if record not in stored and record not in found:
            assert any(after <= record.time_ns <= until for after, until in bounds), record


def test_a_read_that_breaks_off_within_the_repetition_adds_nothing() -> None:
    everything = unique(50)
    assert read(everything[:40], everything[:30]) == ([], False)
    assert read(everything[:40], everything[10:30]) == ([], False)


def test_an_empty_read_adds_nothing_and_declares_nothing() -> None:
    assert read(unique(5), []) == ([], False)


def test_a_long_second_costs_linear_time() -> None:
    everything = unique(60_000)
    assert read(everything[:50_000], everything[20_000:], 1000) == (everything[50_000:], False)


def test_a_second_with_a_great_many_lines_is_not_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    newest_first = (Record(1000, b"line %060d\n" % number) for number in range(200_000))
    monkeypatch.setattr(selectors, "newest_first", lambda _stream_id: newest_first)
    tracemalloc.start()
    try:
        stored, _since = history.since(uuid4(), 1000, next_line=200_001)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
    assert len(stored.keys) == 200_000
