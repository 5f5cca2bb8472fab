"""One leader at a time, fenced by an epoch."""

from datetime import timedelta

import pytest
import time_machine

from portal.core import leases
from portal.core.leases import Fence, FencedOff

pytestmark = pytest.mark.django_db
TTL = timedelta(seconds=15)


def take(holder: str) -> Fence | None:
    return leases.take(name="watch:default", holder=holder, ttl=TTL)


def test_the_first_to_come_leads_and_the_second_waits() -> None:
    assert take("a") is not None
    assert take("b") is None


def test_the_leader_renews_without_a_new_epoch() -> None:
    first, second = take("a"), take("a")
    assert first == second


def test_a_standby_takes_over_when_the_leader_falls_silent_and_the_old_leader_is_fenced_off() -> None:
    old = take("a")
    with time_machine.travel(timedelta(seconds=16), tick=False):
        new = take("b")
        assert new is not None
        assert old is not None
        assert new.epoch == old.epoch + 1
        leases.check(new)
        with pytest.raises(FencedOff):
            leases.check(old)


def test_a_lease_given_back_is_free_at_once() -> None:
    take("a")
    leases.release(name="watch:default", holder="a")
    assert take("b") is not None


def test_a_person_needs_no_lease() -> None:
    leases.check(None)
