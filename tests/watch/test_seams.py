"""Where files of a log begin, and which pauses may hide one."""

from portal.logs.specs import Batch, Record
from portal.watch.seams import JUMP_NS, NANO, Jump, Recent, Seams, began_late, jumps_in

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
    seams = Seams()
    looked(seams, 10, 30)
    assert seams.innocent(jump(10, 20))
    # The last second before the look is not relied on, because the node's clock may be behind.
    assert not seams.innocent(jump(20, 29.5))
    assert not seams.innocent(jump(9, 11))


def test_a_file_that_began_in_a_pause_was_left_out_however_late_that_is_learnt() -> None:
    seams = Seams()
    hidden = jump(10, 20)
    seams.passed(hidden)
    seams.passed(jump(20, 25))
    assert looked(seams, 15, 30) == [hidden]
    assert looked(seams, 15, 31) == []
    assert seams.guilty(jump(14, 16))
    assert not seams.guilty(jump(15, 17))


def test_lateness_is_told_by_the_promptest_record_where_the_clocks_differ() -> None:
    seams = Seams()
    # The node is five seconds ahead: what seems to come before it was written comes at once.
    assert seams.arrived(START + 5 * NANO, START) == 0
    assert seams.arrived(START + 5 * NANO, START + 2 * NANO) == 2 * NANO


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


def test_a_log_read_late_for_the_first_time_may_have_been_rotated_if_it_grows_fast_enough() -> None:
    much = Batch.of([Record(START + 60 * NANO + n * 100_000, b"x" * 99 + b"\n") for n in range(1000)])
    later = START + 61 * NANO
    assert began_late(much, START, later)
    # Read from its first seconds on; a container that speaks late; one that says little.
    assert not began_late(much, START + 58 * NANO, later)
    assert not began_late(much[:50], START, later)
    slow = Batch.of([Record(START + (60 + n) * NANO, b"x" * 99 + b"\n") for n in range(1000)])
    assert not began_late(slow, START, later + 1000 * NANO)
