"""Rotation, stalls, cuts and dead watchers: what is stored and the declared gaps together are all that was written."""

import asyncio
import importlib
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from portal.jobs.models import Job
from portal.logs import services
from portal.logs.models import Cause, Stream
from portal.logs.specs import Loss, Record
from portal.watch import follower as module
from portal.watch.desk import Backoff
from portal.watch.reading import Reading
from portal.watch.seams import Jump
from tests.watch.cluster import NOON_NS
from tests.watch.conftest import until
from tests.watch.kubelet import SECOND
from tests.watch.story import Story, assert_exact, lines, told, turns

# The package gives its verb the name of the module.
append_module = importlib.import_module("portal.logs.services.append")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "pause", lambda _self: 0.01)
    monkeypatch.setattr(module, "DRAIN", 0.2)


def test_case_05_a_log_over_ten_rotations_has_every_line_once(job: Job) -> None:
    async def tale(story: Story) -> None:
        for _ in range(10):
            lines(story, 200)
            await story.caught_up()
            story.kubelet.rotate()
        lines(story, 5)
        await story.caught_up()
        await story.ended()
        await assert_exact(story, gaps=0)
        assert (await story.stored())[0] == b"".join(text for _, text in story.kubelet.written)

    told(job, tale)


async def slept_through(story: Story) -> None:
    """Three rotations while nothing can be sent: two files are left out, and the newest comes three times."""
    lines(story, 100)
    await story.caught_up()
    story.kubelet.stall(on=True)
    lines(story, 100)
    await turns()
    for _ in range(3):
        story.kubelet.rotate()
        lines(story, 100)
        await turns()
    story.kubelet.stall(on=False)


def test_three_rotations_slept_through_are_a_declared_gap_and_nothing_is_doubled(job: Job) -> None:
    async def tale(story: Story) -> None:
        await slept_through(story)
        await story.caught_up()
        lines(story, 100)
        await story.ended()
        (gap,) = await assert_exact(story, gaps=1)
        written = story.kubelet.written
        # Two whole files were left out; the newest one was sent three times.
        assert gap.cause == Cause.SKIPPED
        assert (gap.before_line, gap.after_ns, gap.until_ns) == (201, written[199][0], written[400][0])

    told(job, tale)


def test_one_rotation_slept_through_costs_nothing_and_is_no_gap(job: Job) -> None:
    async def tale(story: Story) -> None:
        lines(story, 100)
        await story.caught_up()
        story.kubelet.stall(on=True)
        lines(story, 3000, every_ns=2_000_000)
        story.kubelet.rotate()
        lines(story, 100)
        story.kubelet.stall(on=False)
        await story.caught_up()
        await story.ended()
        await assert_exact(story, gaps=0)

    told(job, tale)


def test_a_container_that_says_something_once_an_hour_is_never_said_to_miss_anything(job: Job) -> None:
    async def tale(story: Story) -> None:
        for hour in range(6):
            lines(story, 3)
            await story.caught_up()
            if hour % 2:
                story.kubelet.rotate()
            story.kubelet.tick(3600 * SECOND)
        lines(story, 3)
        await story.caught_up()
        await story.kill()
        lines(story, 3)
        await story.caught_up()
        await story.ended()
        await assert_exact(story, gaps=0)

    told(job, tale)


def test_an_old_log_read_for_the_first_time_asks_once_where_its_file_begins(job: Job) -> None:
    async def tale(story: Story) -> None:
        assert story.task is not None
        story.task.cancel()
        lines(story, 500, every_ns=60 * SECOND)
        story.kubelet.tick(3600 * SECOND)
        story.begin()
        await story.caught_up()
        await story.ended()
        await assert_exact(story, gaps=0)
        assert story.kubelet.asked < 20

    told(job, tale)


def test_a_watcher_that_comes_when_files_have_gone_says_so_before_line_1(job: Job) -> None:
    async def tale(story: Story) -> None:
        assert story.task is not None
        story.task.cancel()
        for _ in range(3):
            lines(story, 500, width=400)
            story.kubelet.rotate()
        lines(story, 500, width=400)
        story.begin()
        await story.caught_up()
        await story.ended()
        (gap,) = await assert_exact(story, gaps=1)
        assert (gap.cause, gap.before_line) == (Cause.ROTATED, 1)

    told(job, tale)


@pytest.mark.parametrize("lines_kept", [100, 450])
def test_a_watcher_killed_before_it_knew_leaves_no_loss_unsaid(job: Job, lines_kept: int) -> None:
    """What it had stored is judged by the one that comes after it."""

    async def tale(story: Story) -> None:
        assert story.task is not None
        story.task.cancel()
        for _ in range(3):
            lines(story, 500, width=400)
            story.kubelet.rotate()
        lines(story, 500, width=400)
        story.kubelet.stall_after = lines_kept * 440
        story.begin()
        await until(lambda: _stored(story, lines_kept // 2))
        assert (await story.stored())[2] == []
        story.kubelet.stall_after = None
        await story.kill()
        await story.caught_up()
        await story.ended()
        (gap,) = await assert_exact(story, gaps=1)
        assert (gap.cause, gap.before_line) == (Cause.ROTATED, 1)

    told(job, tale)


def test_a_loss_found_while_lines_are_being_stored_is_not_forgotten(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    real = services.append
    found: list[Jump] = []
    readings: list[Reading] = []

    class Kept(Reading):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            readings.append(self)

    async def declare() -> None:
        """As a look does that finds a file in a pause."""
        found.append(Jump(NOON_NS, NOON_NS + SECOND, line=50, late=True))
        readings[-1].declare(found[0])

    monkeypatch.setattr(module, "Reading", Kept)

    async def tale(story: Story) -> None:
        loop = asyncio.get_running_loop()

        def looks_meanwhile(**given: Any) -> object:
            taken = real(**given)
            if not found and given["first_line"] > 100:
                asyncio.run_coroutine_threadsafe(declare(), loop).result(5)
            return taken

        monkeypatch.setattr(services, "append", looks_meanwhile)
        lines(story, 100)
        await story.caught_up()
        lines(story, 100)
        await story.caught_up()
        lines(story, 5)
        await story.caught_up()
        await story.ended()
        assert [gap.before_line for gap in (await story.stored())[2]] == [50]

    told(job, tale)


def test_a_connection_that_brought_lines_is_no_reason_to_wait_longer_for_the_next(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def pause(backoff: Backoff) -> float:
        tries.append(round(backoff._next / 0.2))
        backoff._next *= 2
        return 0.01

    monkeypatch.setattr(Backoff, "pause", pause)

    async def tale(story: Story) -> None:
        for _ in range(8):
            lines(story, 20)
            await story.caught_up()
            opened = story.kubelet.opened
            story.kubelet.cut(0)
            await until(lambda opened=opened: _opened(story, opened + 1))  # type: ignore[misc]
        await story.ended()
        assert set(tries) == {1}

    told(job, tale)


def test_a_container_that_says_nothing_is_listened_to_without_a_pause(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause(_backoff: Backoff) -> float:
        raise AssertionError("nothing has gone wrong")

    async def tale(story: Story) -> None:
        lines(story, 5)
        await story.caught_up()
        monkeypatch.setattr(Backoff, "pause", pause)
        for _ in range(5):
            opened = story.kubelet.opened
            story.kubelet.give_up()
            await until(lambda opened=opened: _opened(story, opened + 1))  # type: ignore[misc]
        lines(story, 5)
        await story.caught_up()
        await story.ended()
        await assert_exact(story, gaps=0)

    told(job, tale)


def test_a_preempted_container_that_had_long_said_nothing_is_not_asked_in_a_tight_loop_and_misses_nothing(
    job: Job,
) -> None:
    async def tale(story: Story) -> None:
        assert story.follower is not None
        lines(story, 5)
        await story.caught_up()
        story.kubelet.tick(150 * SECOND)
        opened = story.kubelet.opened
        story.kubelet.give_up()
        await until(lambda: _opened(story, opened + 1))
        story.follower.deleting.set()
        story.kubelet.end()
        await until(lambda: _read_again(story))
        assert story.kubelet.opened - opened < 8
        story.kubelet.vanish()
        await story.ended()
        await assert_exact(story, gaps=0)

    told(job, tale)


def test_a_silent_connection_that_is_opened_anew_again_and_again_changes_nothing(job: Job) -> None:
    async def tale(story: Story) -> None:
        lines(story, 5)
        await story.caught_up()
        for _ in range(30):
            # An hour of silence, in which the line is given up every two minutes.
            story.kubelet.tick(120 * SECOND)
            story.kubelet.cut(0)
            opened = story.kubelet.opened
            await until(lambda opened=opened: _opened(story, opened + 1))  # type: ignore[misc]
        lines(story, 5)
        await story.caught_up()
        await story.ended()
        await assert_exact(story, gaps=0)

    told(job, tale)


def test_a_gap_and_the_lines_behind_it_are_stored_together_or_not_at_all(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = append_module.note_losses
    refused = iter([True])

    def dies_once(stream: UUID, losses: Sequence[Loss]) -> None:
        if len(losses) and next(refused, False):
            raise RuntimeError("the process ends here")
        real(stream, losses)

    monkeypatch.setattr(append_module, "note_losses", dies_once)

    async def tale(story: Story) -> None:
        await slept_through(story)
        await story.caught_up()
        await story.ended()
        await assert_exact(story)

    told(job, tale)


def test_a_store_that_hangs_lets_nothing_pile_up(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    real = append_module.append

    def slowly(**given: object) -> object:
        time.sleep(0.05)
        return real(**given)

    monkeypatch.setattr(services, "append", slowly)

    async def tale(story: Story) -> None:
        story.kubelet.portion = 64 * 1024
        lines(story, 4_000, width=4000)
        tracemalloc.start()
        try:
            await until(lambda: _stored(story, 4_000), seconds=40)
            assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
        finally:
            tracemalloc.stop()
        await story.ended()
        text, _records, gaps = await story.stored()
        assert text == b"".join(text for _, text in story.kubelet.written)
        assert gaps == []

    told(job, tale)


def test_a_file_sent_again_that_begins_with_the_rest_of_a_line_is_recognised(job: Job) -> None:
    async def tale(story: Story) -> None:
        story.kubelet.fragment = 30
        lines(story, 20)
        await story.caught_up()
        story.kubelet.stall(on=True)
        story.kubelet.rotate()
        lines(story, 3)
        await turns()
        for _ in range(2):
            story.kubelet.rotate()
            lines(story, 3)
        story.kubelet.rotate()
        # The first fragment of this line went to the file before.
        story.kubelet.tick(1_000_000)
        story.kubelet.files[-1].append((story.kubelet.now_ns, b"the rest of a long line\n"))
        story.kubelet.written.append(story.kubelet.files[-1][-1])
        lines(story, 20)
        story.kubelet.stall(on=False)
        await story.caught_up()
        await story.ended()
        gaps = await assert_exact(story)
        assert 24 in [gap.before_line for gap in gaps]

    told(job, tale)


def test_a_late_line_of_the_other_pipe_is_a_line_like_any_other(job: Job) -> None:
    async def tale(story: Story) -> None:
        for n in range(200):
            story.kubelet.tick(1_000_000)
            story.kubelet.write(b"out %d\n" % n)
            story.kubelet.write(b"err %d\n" % n, late_ns=n % 3 * 400_000)
            if n % 50 == 49:
                await story.caught_up()
        await story.ended()
        await assert_exact(story, gaps=0)

    told(job, tale)


def test_a_clock_that_is_set_back_loses_nothing(job: Job) -> None:
    async def tale(story: Story) -> None:
        lines(story, 50)
        await story.caught_up()
        story.kubelet.now_ns -= 5 * SECOND
        lines(story, 3000)
        await story.caught_up()
        await story.ended()
        await assert_exact(story, gaps=0)

    told(job, tale)


def test_lines_that_only_the_last_read_shows_are_added(job: Job) -> None:
    async def tale(story: Story) -> None:
        lines(story, 50)
        await story.caught_up()
        # The reader hangs, and the container ends: the endpoint closes the old file and says nothing of the new one.
        story.kubelet.stall(on=True)
        story.kubelet.rotate()
        lines(story, 20)
        story.kubelet.cut(0)
        await story.ended()
        await assert_exact(story, accidents=1)
        assert (await story.stored())[1][-1] == Record(*story.kubelet.written[-1])

    told(job, tale)


def test_case_45_the_log_of_a_deleted_pod_that_was_read_to_its_end_misses_nothing(job: Job) -> None:
    async def tale(story: Story) -> None:
        assert story.follower is not None
        lines(story, 50)
        await story.caught_up()
        story.follower.deleting.set()
        lines(story, 5)
        story.kubelet.end()
        await until(lambda: _read_again(story))
        story.kubelet.vanish()
        await story.ended()
        await assert_exact(story, gaps=0)

    told(job, tale)


@pytest.mark.parametrize(("seconds", "gaps"), [(5.0, 0), (0.0, 1)], ids=["at once", "later"])
def test_of_a_preempted_pod_that_is_gone_before_its_log_can_be_read_again_the_end_of_the_connection_counts(
    job: Job, monkeypatch: pytest.MonkeyPatch, seconds: float, gaps: int
) -> None:
    """If it was closed in order, and just now: the endpoint does so where a container has ended."""
    monkeypatch.setattr(module, "JUST_CLOSED", seconds)

    async def tale(story: Story) -> None:
        assert story.follower is not None
        lines(story, 50)
        await story.caught_up()
        story.follower.deleting.set()
        lines(story, 5)
        await story.caught_up()
        story.kubelet.vanish()
        await story.ended()
        found = await assert_exact(story, gaps=gaps, accidents=gaps)
        assert [gap.cause for gap in found] == [Cause.DELETED] * gaps

    told(job, tale)


def test_the_log_of_a_pod_that_vanished_says_that_its_end_may_be_missing(job: Job) -> None:
    async def tale(story: Story) -> None:
        lines(story, 50)
        await story.caught_up()
        story.kubelet.stall(on=True)
        lines(story, 5)
        story.kubelet.vanish()
        story.kubelet.cut(0)
        await story.ended()
        (gap,) = await assert_exact(story, gaps=1)
        assert gap.cause == Cause.DELETED

    told(job, tale)


async def _stored(story: Story, number: int) -> bool:
    return await Stream.objects.filter(pod_uid=story.ref.pod_uid, next_line__gt=number).aexists()


async def _opened(story: Story, times: int) -> bool:
    return story.kubelet.opened >= times


async def _read_again(story: Story) -> bool:
    return story.follower is not None and story.follower._read_again


# What may happen to a container and to those who read its log.
