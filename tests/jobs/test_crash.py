"""The process dies between any two steps: in the end there is one row and one object, or one row and none."""

from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
import time_machine

from portal.core.clock import now
from portal.jobs.models import Attempt, Job, State
from portal.jobs.services import cancel, submit, sweep
from portal.jobs.services import errands as errands_module
from portal.jobs.services.errands import LEASE
from portal.quotas import services as quotas
from portal.teams.models import User
from tests.jobs.cluster import ClusterDouble, Killed
from tests.jobs.conftest import Ask, attempt_of

# By its path, because the package has a verb of the same name.
dispatching = import_module("portal.jobs.services.dispatch")

Arm = Callable[[ClusterDouble, pytest.MonkeyPatch], None]


def _dies(*_args: Any, **_kwargs: Any) -> Any:
    raise Killed


def _once(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, *, after: bool) -> None:
    """The first call of a step ends the process, before it or right after it."""
    real, left = getattr(module, name), [1]

    def step(*args: Any, **kwargs: Any) -> Any:
        if left and left.pop():
            if after:
                real(*args, **kwargs)
            raise Killed
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, step)


# Every place where a dispatching process can die, in the order in which it passes them.
STEPS: dict[str, Arm] = {
    "before it claims": lambda _c, m: _once(m, errands_module, "claim", after=False),
    "after it has claimed": lambda _c, m: _once(m, errands_module, "claim", after=True),
    "before the place is made": lambda c, _m: c.fail("provision", Killed()),
    "after the place is made": lambda c, _m: c.fail("provision", Killed(), after=True),
    "after the place is written down": lambda _c, m: _once(m, quotas, "ensure_provisioned", after=True),
    "before the object is made": lambda c, _m: c.fail("create", Killed()),
    "after the object is made": lambda c, _m: c.fail("create", Killed(), after=True),
    "before the answer is written down": lambda _c, m: _once(m, dispatching, "settle_all", after=False),
    "after the answer is written down": lambda _c, m: _once(m, dispatching, "settle_all", after=True),
}


def _until_done() -> None:
    """Time goes on; the beat's sweep comes again and again."""
    for minute in range(1, 6):
        with time_machine.travel(now() + minute * (LEASE + timedelta(seconds=5))):
            sweep()


@pytest.mark.parametrize("step", STEPS)
def test_killed_while_making_leaves_one_object_and_one_row(
    cluster: ClusterDouble, ask: Ask, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    job = submit(ask()).job
    STEPS[step](cluster, monkeypatch)
    with pytest.raises(Killed):
        sweep()
    _until_done()
    attempt = attempt_of(job)
    assert (Job.objects.count(), Attempt.objects.count()) == (1, 1)
    assert dict(cluster.made) == {attempt.object_name: 1}
    assert (attempt.state, attempt.object_uid) == (State.QUEUED, cluster.things[attempt.object_name].uid)
    assert (attempt.due_at, attempt.claim_token) == (None, None)


@pytest.mark.parametrize("step", STEPS)
def test_killed_while_making_and_cancelled_then_leaves_no_object(
    cluster: ClusterDouble, ask: Ask, member: User, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    job = submit(ask()).job
    STEPS[step](cluster, monkeypatch)
    with pytest.raises(Killed):
        sweep()
    cancel(actor=member, job=job)
    _until_done()
    assert (cluster.things, attempt_of(job).state) == ({}, State.CANCELLED)
    assert all(count == 1 for count in cluster.made.values())


DELETION: dict[str, Arm] = {
    "before the deletion": lambda c, _m: c.fail("delete", Killed()),
    "after the deletion": lambda c, _m: c.fail("delete", Killed(), after=True),
    "before it is written down": lambda _c, m: _once(m, dispatching, "settle_all", after=False),
    "after it is written down": lambda _c, m: _once(m, dispatching, "settle_all", after=True),
}


@pytest.mark.parametrize("step", DELETION)
def test_killed_while_cancelling_still_cancels(
    cluster: ClusterDouble, ask: Ask, member: User, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    job = submit(ask()).job
    sweep()
    cancel(actor=member, job=job)
    DELETION[step](cluster, monkeypatch)
    with pytest.raises(Killed):
        sweep()
    _until_done()
    assert (cluster.things, attempt_of(job).state) == ({}, State.CANCELLED)


def test_a_submission_that_dies_before_its_end_leaves_nothing(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, cluster: ClusterDouble
) -> None:
    monkeypatch.setattr("portal.audit.services.record", _dies)
    with pytest.raises(Killed):
        submit(ask(idempotency_key="k"))
    monkeypatch.undo()
    assert not Job.objects.exists()
    assert submit(ask(idempotency_key="k")).created


def test_a_hint_that_is_lost_costs_nothing_but_time(cluster: ClusterDouble, ask: Ask) -> None:
    """No worker ever gets the nudge: the sweep finds the row all the same."""
    jobs = [submit(ask()).job for _ in range(5)]
    sweep()
    assert {attempt_of(job).state for job in jobs} == {State.QUEUED}
