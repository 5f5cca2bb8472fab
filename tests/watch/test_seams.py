"""Where files of a log begin, and which pauses may hide one."""

import pytest

from portal.logs.policy.stamps import NANO
from portal.logs.specs import Batch, Record
from portal.watch.seams import JUMP_NS, Jump, Recent, Seams, jumps_in
from tests.watch.conftest import FILE_BYTES

START = 1_000 * NANO


def batch(*moments: float) -> Batch:
    return Batch.of([Record(START + int(moment * NANO), b"at %f\n" % moment) for moment in moments])


def jump(after: float, until: float) -> Jump:
    return Jump(START + int(after * NANO), START + int(until * NANO), line=1, late=True)


def looked(seams: Seams, first: float, asked: float) -> list[Jump]:
    return seams.looked(START + int(first * NANO), START + int(asked * NANO))


def test_only_a_long_pause_is_looked_at() -> None:
    assert jumps_in(batch(0, 0.2, 0.4), START - JUMP_NS + 1) == []
    assert jumps_in(batch(0, 0.2, 0.5, 0.6, 9), START - JUMP_NS) == [0, 2, 4]


def test_a_pause_within_the_present_file_hides_nothing() -> None:
    seams = Seams(FILE_BYTES)
    looked(seams, 10, 30)
    assert seams.innocent(jump(10, 20))
    # The last second before the look is not relied on, because the node's clock may be behind.
    assert not seams.innocent(jump(20, 29.5))
    assert not seams.innocent(jump(9, 11))


def test_a_file_that_began_in_a_pause_was_left_out_however_late_that_is_learnt() -> None:
    seams = Seams(FILE_BYTES)
    hidden = jump(10, 20)
    seams.passed(hidden)
    seams.passed(jump(20, 25))
    assert looked(seams, 15, 30) == [hidden]
    # It is told again until that is stored.
    assert looked(seams, 15, 31) == [hidden]
    seams.told([hidden])
    assert looked(seams, 15, 32) == []
    assert seams.guilty(jump(14, 16))
    assert not seams.guilty(jump(15, 17))


def test_lateness_is_told_by_the_promptest_record_where_the_clocks_differ() -> None:
    seams = Seams(FILE_BYTES)
    # The node is five seconds ahead: what seems to come before it was written comes at once.
    assert seams.arrived(START + 5 * NANO, START) == 0
    assert seams.arrived(START + 5 * NANO, START + 2 * NANO) == 2 * NANO


def test_a_node_whose_clock_is_somewhat_behind_is_not_always_late() -> None:
    seams = Seams(FILE_BYTES)
    assert seams.arrived(START, START + NANO * 8 // 10) == 0
    assert seams.arrived(START + NANO, START + NANO * 18 // 10) == 0
    assert seams.arrived(START + 2 * NANO, START + NANO * 48 // 10) == 2 * NANO


def test_a_record_is_found_among_the_recent_ones_and_old_ones_are_forgotten() -> None:
    recent = Recent()
    first = Record(START, b"x" * 1000)
    recent.add(Batch.of([first]))
    assert recent.holds(first)
    assert not recent.holds(Record(START, b"y"))
    for n in range(1, 1000):
        recent.add(Batch.of([Record(START + n, b"x" * 1000)]))
    assert not recent.holds(first)
    assert recent.holds(Record(START + 999, b"x" * 1000))
    assert recent.since_ns is not None
    assert recent.since_ns > START


def test_a_short_pause_hides_a_file_only_if_so_much_can_have_been_written_in_it() -> None:
    seams = Seams(file_bytes=100_000)
    grow(seams, Batch.of([Record(START + n * NANO // 1000, b"x" * 60) for n in range(2000)]))
    # A hundred thousand bytes a second, with what the runtime writes beside them.
    assert seams.is_too_short(jump(5, 5.9))
    assert not seams.is_too_short(jump(5, 6.1))
    # Longer than the kubelet waits between two looks: then nothing is known of how fast it was meanwhile.
    slow = Seams(file_bytes=100_000)
    grow(slow, batch(0, 1, 2, 3))
    assert slow.is_too_short(jump(5, 7.9))
    assert not slow.is_too_short(jump(5, 8.1))


def grow(seams: Seams, batch: Batch) -> tuple[int, int] | None:
    return seams.grew(batch, size=sum(map(len, batch.texts)))


def opened(seams: Seams, moment: float) -> Seams:
    seams.begins(START, START + int(moment * NANO))
    return seams


def beginning_at(moment: float, *, every: float) -> Batch:
    """Two seconds of a log with a hundred bytes a record in its file."""
    return Batch.of([Record(START + int((moment + n * every) * NANO), b"x" * 60) for n in range(int(2 / every))])


@pytest.mark.parametrize(
    ("silent", "file_bytes", "unread"), [(3, 300_000, True), (1.5, 140_000, True), (3, 700_000, False)]
)
def test_a_log_read_late_may_have_been_rotated_if_it_is_fast_enough_to_have_filled_a_file(
    silent: float, file_bytes: int, unread: bool
) -> None:
    seams = opened(Seams(file_bytes), silent + 1)
    found = grow(seams, beginning_at(silent, every=0.001))
    assert found == ((START, START + int(silent * NANO)) if unread else None)


@pytest.mark.parametrize(
    ("moment", "file_bytes", "first"),
    [
        # It was open when it began.
        (58, 300_000, beginning_at(60, every=0.001)),
        # Fifty lines at once behind a minute of silence, as a program says that has loaded its model.
        (63, 10 * 1024 * 1024, Batch.of([Record(START + 60 * NANO + n, b"x" * 60) for n in range(50)])),
        (63, 10 * 1024 * 1024, beginning_at(60, every=0.1)),
        # As fast as it can, from its start on.
        (63, 10_000, beginning_at(0.9, every=0.001)),
    ],
)
def test_what_is_read_as_it_is_written_or_says_little_misses_nothing_before_it(
    moment: float, file_bytes: int, first: Batch
) -> None:
    seams = opened(Seams(file_bytes), moment)
    assert grow(seams, first) is None
    assert seams.begun() is None


def test_of_a_log_of_which_little_lay_there_the_pace_is_learnt_from_what_follows() -> None:
    """Its first file was full after a second and a half, and changed right before the log was opened."""
    seams = opened(Seams(140_000), 1.6)
    whole = beginning_at(1.5, every=0.001)
    assert grow(seams, whole[:100]) is None
    assert grow(seams, whole[100:900]) is None
    assert grow(seams, whole[900:]) == (START, START + int(1.5 * NANO))


def test_a_file_may_be_changed_between_the_question_and_its_opening() -> None:
    seams = opened(Seams(140_000), 1.2)
    assert grow(seams, beginning_at(1.5, every=0.001)) == (START, START + int(1.5 * NANO))


def test_what_lay_there_is_judged_as_a_whole_and_once() -> None:
    seams = opened(Seams(300_000), 5)
    whole = beginning_at(3, every=0.001)
    assert grow(seams, whole[:100]) is None
    assert grow(seams, whole[100:]) is None
    assert seams.begun() == (START, START + 3 * NANO)
    assert seams.begun() is None


def test_a_burst_and_then_a_line_a_second_fills_no_file() -> None:
    seams = opened(Seams(300_000), 60)
    assert grow(seams, beginning_at(3, every=0.001)[:500]) is None
    assert grow(seams, Batch.of([Record(START + n * NANO, b"step\n") for n in range(4, 15)])) is None
    assert seams.begun() is None
