"""Any schedule of writes, rotations, cuts, stalls and killed watchers: nothing lost in silence, nothing doubled."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from portal.jobs.models import Job
from portal.watch import follower as module
from portal.watch.desk import Backoff
from tests.watch.conftest import true, until
from tests.watch.kubelet import SECOND
from tests.watch.story import Story, assert_exact, lines, told, turns


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "pause", lambda _self: 0.01)
    monkeypatch.setattr(module, "DRAIN", 0.2)


# What may happen to a container and to those who read its log.
events = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 30), st.sampled_from([0, 1, 1000, 300_000_000])),
    st.tuples(st.just("binary"), st.sampled_from([b"\xff\xfe\x00", b"\r50 %\r", b"", b"x" * 500]), st.just(0)),
    st.tuples(st.just("rotate"), st.just(0), st.just(0)),
    st.tuples(st.just("cut"), st.integers(0, 2000), st.just(0)),
    st.tuples(st.just("stall"), st.just(0), st.just(0)),
    st.tuples(st.just("flow"), st.just(0), st.just(0)),
    st.tuples(st.just("kill"), st.just(0), st.just(0)),
    st.tuples(st.just("silence"), st.integers(1, 600), st.just(0)),
    st.tuples(st.just("settle"), st.just(0), st.just(0)),
)
Event = tuple[str, int | bytes, int]

STALL: list[Event] = [
    ("write", 20, 1000), ("settle", 0, 0), ("stall", 0, 0), ("write", 20, 1000), ("rotate", 0, 0), ("write", 20, 1000),
    ("rotate", 0, 0), ("write", 20, 1000), ("rotate", 0, 0), ("write", 20, 1000), ("flow", 0, 0), ("settle", 0, 0),
]  # fmt: skip


async def happen(story: Story, event: Event) -> None:
    what, number, pause = event
    kubelet = story.kubelet
    if what == "write" and isinstance(number, int):
        # One step of the clock at least for every few lines: a file with a single time could not be told apart.
        kubelet.tick(1)
        lines(story, number, every_ns=pause)
    elif what == "binary" and isinstance(number, bytes):
        kubelet.tick(1)
        kubelet.write(b"%d " % len(kubelet.written) + number + b"\n")
    elif what == "rotate":
        kubelet.rotate()
    elif what == "cut" and isinstance(number, int):
        kubelet.cut(number)
    elif what in ("stall", "flow"):
        kubelet.stall(on=what == "stall")
    elif what == "kill":
        await story.kill()
    elif what == "silence" and isinstance(number, int):
        kubelet.tick(number * SECOND // 10)
    elif what == "settle" and not kubelet.stalled:
        await until(lambda: true(kubelet.all_sent()))
    await turns()


@given(
    schedule=st.lists(events, max_size=40),
    portion=st.sampled_from([1, 7, 100, 4096]),
    fragment=st.sampled_from([20, 16 * 1024]),
)
@example(schedule=STALL, portion=4096, fragment=16 * 1024)
@example(schedule=[*STALL, ("kill", 0, 0), *STALL, ("cut", 100, 0), *STALL], portion=100, fragment=20)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_happens_stored_text_and_declared_gaps_are_all_that_was_written(
    job: Job, schedule: list[Event], portion: int, fragment: int
) -> None:
    async def tale(story: Story) -> None:
        story.kubelet.portion, story.kubelet.fragment = portion, fragment
        lines(story, 1)
        await story.caught_up()
        for event in schedule:
            await happen(story, event)
        await story.ended()
        accidents = sum(what in ("cut", "stall", "kill") for what, _, _ in schedule)
        await assert_exact(story, accidents=accidents)

    told(job, tale)
