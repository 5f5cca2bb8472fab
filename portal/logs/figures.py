"""For the operator's metrics: what is still to be done about logs, and what was lost. Each is answered by an index."""

from typing import NamedTuple

from django.db.models import Count, Q

from portal.logs.models import Cause, Gap, Parcel, Stream


class Unproved(NamedTuple):
    """Streams without a digest: those that have no end yet, and those that have one and wait for it."""

    open: int
    unsealed: int


def unproved() -> Unproved:
    """One query."""
    rows = Stream.objects.filter(sealed_at=None, expired_at=None)
    ended = Q(completed_at__isnull=False)
    return Unproved(**rows.aggregate(open=Count("pk", filter=~ended), unsealed=Count("pk", filter=ended)))


def gaps_by_cause() -> dict[str, int]:
    """How many gaps there are in the logs that are known, by cause, 0 included. One query."""
    found = dict(Gap.objects.order_by().values_list("cause").annotate(rows=Count("*")))
    return {str(cause): found.get(cause, 0) for cause in Cause}


def parcels_waiting() -> int:
    """One query."""
    return Parcel.objects.count()
