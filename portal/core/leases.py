"""Taking, renewing and checking a lease. All guards are conditional UPDATEs, which are right on both databases."""

from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import F

from portal.core.clock import now
from portal.core.errors import BeamtimeError
from portal.core.models import Lease


@dataclass(frozen=True, slots=True)
class Fence:
    """Proof of having held the lease `name` in `epoch`; goes with every write of the leader."""

    name: str
    epoch: int


class FencedOff(BeamtimeError):
    """Somebody else leads now: whoever gets this must stop acting as the leader."""


def take(*, name: str, holder: str, ttl: timedelta) -> Fence | None:
    """Become the leader, or None while another holder's lease is still good. Renews one's own lease."""
    moment = now()
    mine = Lease.objects.filter(name=name, holder=holder, expires_at__gt=moment)
    if mine.update(expires_at=moment + ttl):
        return _fence(name, holder)
    expired = Lease.objects.filter(name=name, expires_at__lte=moment)
    if expired.update(holder=holder, epoch=F("epoch") + 1, expires_at=moment + ttl):
        return _fence(name, holder)
    try:
        with transaction.atomic():
            Lease.objects.create(name=name, holder=holder, expires_at=moment + ttl)
    except IntegrityError:
        return None
    return _fence(name, holder)


def release(*, name: str, holder: str) -> None:
    """Give the lease back at once, so that a standby need not wait for it to expire."""
    Lease.objects.filter(name=name, holder=holder).update(expires_at=now())


def check(fence: Fence | None) -> None:
    """Inside the transaction of a leader's write: raise `FencedOff` unless the epoch is still the present one.

    None means that the caller acts for a person or a task, which need no leadership.
    """
    if fence is not None and not Lease.objects.filter(name=fence.name, epoch=fence.epoch).exists():
        raise FencedOff(f"{fence.name}: epoch {fence.epoch} is over")


def _fence(name: str, holder: str) -> Fence | None:
    epoch = Lease.objects.filter(name=name, holder=holder).values_list("epoch", flat=True).first()
    return None if epoch is None else Fence(name, epoch)
