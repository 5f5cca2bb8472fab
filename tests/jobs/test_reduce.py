"""The reducer by itself: any order, any repetition, any missing field."""

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.clusters.specs import AttemptFacts, ContainerFacts
from portal.jobs.models import State
from portal.jobs.policy import AttemptSnapshot, Terms, is_terminal, may_follow, reduce
from tests.jobs.facts import Told, at, ended, pod, running

TERMS = Terms(runs=1, memory_mib=65536, time_limit_seconds=3600, gpu_resource="nvidia.com/gpu")
SEEN = at(100_000)


def live(snapshot: AttemptSnapshot, *facts: AttemptFacts) -> list[AttemptSnapshot]:
    """Every snapshot on the way, the first one included."""
    way = [snapshot]
    for one in facts:
        way.append(reduce(way[-1], one, TERMS, seen_at=SEEN).after)
    return way


def history(chance: random.Random) -> list[AttemptFacts]:
    """A life as clusters tell it: waits, perhaps preemptions, runs, and one of many ends."""
    story, second = Told(), 0
    told = [story.created(second)]

    def later() -> int:
        nonlocal second
        second += chance.randint(0, 30)
        return second

    if chance.random() < 0.7:
        told.append(
            story.pending("insufficient unused quota for nvidia.com/gpu in flavor h100, 2 more needed", later())
        )
    for stay in range(chance.choice((1, 1, 1, 2, 3))):
        if stay:
            second += 1
            told.append(story.preempted(second))
            second += 6
        told.append(story.admitted(later()))
        second += 1
        one = pod(f"pod-{stay}", created=second)
        told.append(story.pods(one))
        if chance.random() < 0.9:
            one = running(one, later())
            told.append(story.pods(one))
    begun = second
    end = chance.choice(("complete", "failed", "oom", "deleted", "node", "none"))
    code = {"complete": 0, "failed": 3, "oom": 137}.get(end)
    if code is not None:
        reason = {"reason": "OOMKilled"} if end == "oom" else {}
        told.append(story.pods(ended(one, since=begun, until=later(), code=code, **reason)))
        told.append(story.complete(later()) if code == 0 else story.failed(later()))
    elif end == "deleted":
        told.append(story.gone(later()))
    elif end == "node":
        told.append(story.pods(replace(one, gone=True, gone_at=at(later()))))
        told.append(story.failed(later()))
    return told


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 40), max_size=60))
def test_no_order_of_facts_makes_an_illegal_step(seed: int, order: list[int]) -> None:
    told = history(random.Random(seed))
    way = live(AttemptSnapshot(), *(told[index % len(told)] for index in order))
    for before, after in pairwise(way):
        assert before.state is after.state or may_follow(before.state, after.state)
        if is_terminal(before.state):
            assert (after.state, after.ended_at) == (before.state, before.ended_at)
        assert after.created_at is None or before.created_at in (None, after.created_at)
        assert set(before.pods) <= set(after.pods)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_older_and_repeated_facts_change_nothing(seed: int, data: st.DataObject) -> None:
    """After each new fact some that came before are told again; state and times are as if they had not been."""
    told = history(random.Random(seed))
    plain = noisy = AttemptSnapshot()
    for index, facts in enumerate(told):
        plain = reduce(plain, facts, TERMS, seen_at=SEEN).after
        noisy = reduce(noisy, facts, TERMS, seen_at=SEEN).after
        for again in data.draw(st.lists(st.integers(0, index), max_size=4)):
            noisy = reduce(noisy, told[again], TERMS, seen_at=SEEN).after
        names = ("state", "created_at", "admitted_at", "started_at", "ended_at", "requeued_at", "pods", "exit_code")
        assert [getattr(noisy, name) for name in names] == [getattr(plain, name) for name in names]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_the_same_facts_twice_are_no_change_and_no_event(seed: int) -> None:
    snapshot = AttemptSnapshot()
    for facts in history(random.Random(seed)):
        snapshot = reduce(snapshot, facts, TERMS, seen_at=SEEN).after
        again = reduce(snapshot, facts, TERMS, seen_at=SEEN)
        assert (again.after, again.happenings) == (snapshot, ())


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_events_have_keys_of_their_own(seed: int) -> None:
    snapshot, keys = AttemptSnapshot(), []
    for facts in history(random.Random(seed)):
        reduction = reduce(snapshot, facts, TERMS, seen_at=SEEN)
        snapshot = reduction.after
        keys += [happening.key for happening in reduction.happenings]
    assert len(keys) == len(set(keys))


# --- case 63 ---------------------------------------------------------------------------------------------------------


def _emptied(value: Any) -> Iterator[Any]:
    """The value with each optional field of it, however deep, dropped in turn: to its default, and to None."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from ((*value[:index], changed, *value[index + 1 :]) for changed in _emptied(item))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return
    for field in dataclasses.fields(value):
        if field.default is not dataclasses.MISSING:
            yield replace(value, **{field.name: field.default})
        if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING:
            yield replace(value, **{field.name: None})
        for changed in _emptied(getattr(value, field.name)):
            yield replace(value, **{field.name: changed})


@pytest.mark.parametrize("seed", range(12))
def test_case_63_each_missing_field_breaks_nothing(seed: int) -> None:
    """Each optional field of each object, absent or null, one at a time, at each moment of a life."""
    snapshot, tried = AttemptSnapshot(), 0
    for facts in history(random.Random(seed)):
        for maimed in _emptied(facts):
            reduction = reduce(snapshot, maimed, TERMS, seen_at=SEEN)
            after = reduction.after.state
            assert after is snapshot.state or may_follow(snapshot.state, after)
            assert all(happening.at is not None for happening in reduction.happenings)
            tried += 1
        snapshot = reduce(snapshot, facts, TERMS, seen_at=SEEN).after
    assert tried > 50


def test_case_63_an_end_without_a_time_takes_the_next_best() -> None:
    story = Told()
    story.created()
    story.admitted(10)
    going = story.pods(running(pod(), 30))
    finished = story.complete(90)
    assert finished.job is not None
    timeless = replace(finished.job, completed_at=None, conditions=(replace(finished.job.conditions[0], at=None),))
    way = live(AttemptSnapshot(), going, replace(finished, job=timeless))
    assert way[-1].state is State.SUCCEEDED
    assert way[-1].ended_at == SEEN


def test_case_63_a_container_without_any_time_still_counts_as_ended() -> None:
    story = Told()
    story.created()
    story.admitted(10)
    bare = ContainerFacts(name="main", state="terminated", reason="OOMKilled", exit_code=137)
    story.pods(replace(pod(), phase="Failed", containers=(bare,)))
    snapshot = live(AttemptSnapshot(), story.failed(50))[-1]
    assert (snapshot.state, snapshot.reason_code) == (State.FAILED, "out_of_memory")


def test_the_histories_reach_every_kind_of_end() -> None:
    """Else the properties above would prove little."""
    ends = {live(AttemptSnapshot(), *history(random.Random(seed)))[-1].state for seed in range(80)}
    assert {State.SUCCEEDED, State.FAILED, State.LOST, State.RUNNING} <= ends
