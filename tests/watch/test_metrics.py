"""What the operator sees of the followers: how many, what broke, how far behind."""

import asyncio

import pytest

from portal.clusters.specs import LineBroken, LogGone, PassingError
from portal.jobs.models import Job
from portal.watch import follower as module
from portal.watch.desk import Backoff
from portal.watch.reading import Stale
from portal.watch.slots import Slots
from portal.watch.tally import Connections
from tests.support.metrics import counted
from tests.watch.conftest import until
from tests.watch.story import Story, lines, told


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "pause", lambda _self: 0.01)
    monkeypatch.setattr(module, "DRAIN", 0.2)


def reopened(cause: str) -> float:
    return counted("beamtime_log_reopens_total", cause=cause)


def followers(state: str) -> float:
    return counted("beamtime_log_followers", state=state)


def test_a_connection_that_is_cut_counts_as_opened_again_for_that(job: Job) -> None:
    async def tale(story: Story) -> None:
        before = reopened("cut"), reopened("end_of_file")
        for _ in range(3):
            lines(story, 20)
            await story.caught_up()
            opened = story.kubelet.opened
            story.kubelet.cut(0)
            lines(story, 1)

            async def again(opened: int = opened) -> bool:
                return story.kubelet.opened > opened

            await until(again)
        assert (reopened("cut") - before[0], reopened("end_of_file") - before[1]) == (3, 0)
        await story.caught_up()
        await story.ended()

    told(job, tale)


def test_lines_bytes_and_their_age_are_counted_once_stored(job: Job) -> None:
    async def tale(story: Story) -> None:
        names = ("beamtime_log_stored_lines_total", "beamtime_log_stored_bytes_total", "beamtime_log_lag_seconds_count")
        before = [counted(name, source="follower") for name in names]
        lines(story, 100)
        await story.caught_up()
        await story.ended()
        found = [counted(name, source="follower") - was for name, was in zip(names, before, strict=True)]
        assert found[:2] == [100, sum(len(text) for _, text in story.kubelet.written)]
        assert found[2] >= 1

    told(job, tale)


def test_a_follower_is_counted_as_what_it_does_and_not_at_all_when_it_is_done(job: Job) -> None:
    async def tale(story: Story) -> None:
        others = followers("reading")

        async def reads() -> bool:
            return followers("reading") == others + 1

        lines(story, 10)
        await until(reads)
        await story.caught_up()
        ended = reopened("ended")
        await story.ended()
        assert followers("reading") == others
        # It was read once more, as every log is whose container has ended.
        assert reopened("ended") > ended

    told(job, tale)


def test_who_finds_no_place_counts_as_waiting() -> None:
    async def tale() -> None:
        slots, before = Slots(1), followers("waiting")
        async with slots:
            second = asyncio.create_task(slots.__aenter__())
            await asyncio.sleep(0)
            assert followers("waiting") == before + 1
        await second
        assert followers("waiting") == before

    asyncio.run(tale())


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (LineBroken("unexpected EOF"), "cut"),
        (LineBroken("nothing for two minutes", silent=True), "timeout"),
        (PassingError("429"), "refused"),
        (LogGone("ContainerCreating", passing=True), "not_ready"),
        (Stale(), "overtaken"),
        (RuntimeError("ours"), "fault"),
    ],
)
def test_each_end_of_a_connection_has_its_cause(error: Exception, cause: str) -> None:
    log, before = Connections(), reopened(cause)
    with pytest.raises(type(error)), log.one():
        raise error
    assert reopened(cause) == before, "it is not open again yet"
    with log.one():
        pass
    assert reopened(cause) == before + 1


@pytest.mark.parametrize(
    ("closed", "ended", "cause"), [(True, False, "end_of_file"), (False, False, "turn"), (True, True, "ended")]
)
def test_so_has_each_end_in_peace(closed: bool, ended: bool, cause: str) -> None:
    log, before = Connections(), reopened(cause)
    for _ in range(2):
        with log.one():
            pass
        log.left(closed=closed, ended=ended)
    assert reopened(cause) == before + 1
