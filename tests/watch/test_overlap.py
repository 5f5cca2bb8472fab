"""A log that is read again goes on exactly behind what is stored."""

import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from portal.logs.specs import Record
from portal.watch.overlap import Overlap, keys_of

# Few times and few texts, so that lines with equal times and even equal lines are common.
lines = st.lists(st.builds(Record, st.integers(0, 3), st.sampled_from([b"a\n", b"b\n", b"\n"])), max_size=12)


def unique(number: int, start: int = 0) -> list[Record]:
    return [Record(1000, b"line %d\n" % n) for n in range(start, start + number)]


def read(stored: list[Record], again: list[Record], size: int = 3) -> tuple[list[Record], bool]:
    overlap = Overlap(keys_of(reversed(stored)))
    found: list[Record] = []
    for position in range(0, len(again), size):
        found += overlap.new(again[position : position + size])
    return found, overlap.gap


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
    everything = unique(50)
    assert read(everything[:20], everything[30:]) == (everything[30:], True)


def test_a_read_that_breaks_off_within_the_repetition_adds_nothing() -> None:
    everything = unique(50)
    assert read(everything[:40], everything[:30]) == ([], False)
    assert read(everything[:40], everything[10:30]) == ([], False)


def test_an_empty_read_adds_nothing_and_declares_nothing() -> None:
    assert read(unique(5), []) == ([], False)


def test_a_long_second_costs_linear_time() -> None:
    everything = unique(60_000)
    assert read(everything[:50_000], everything[20_000:], 1000) == (everything[50_000:], False)


def test_a_second_with_a_great_many_lines_is_not_kept_in_memory() -> None:
    tracemalloc.start()
    try:
        keys = keys_of(Record(1000, b"line %060d\n" % number) for number in range(200_000))
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
    assert len(keys) == 200_000
