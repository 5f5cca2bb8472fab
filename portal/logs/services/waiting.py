"""Records that a collector has delivered and that have no number yet, as rows."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Max, Q, Sum
from django.db.models.functions import Length

from portal.core.clock import now
from portal.logs.models import Intake, Parcel
from portal.logs.policy.collected import Seen
from portal.logs.policy.parcels import pack, unpack
from portal.logs.policy.settling import FRESH_NS, Reading, Settling
from portal.logs.policy.stamps import NANO

# Bytes of one numbering; and of a stream's parcels beyond which nothing is waited for any longer, so that they do not
# grow for ever.
PORTION, CROWDED = 1024 * 1024, 128 * 1024 * 1024


def keep(stream_id: UUID, records: Sequence[Seen], *, read_ns: int = 0, sender: str = "") -> None:
    """`read_ns`: when the collector read the newest of them; 0: now. `sender`: names the process that sent them."""
    moment = int(now().timestamp() * NANO)
    read_ns = read_ns or moment
    # By the clock that is ahead: a process has read nothing before it began.
    came_ns = max(moment, read_ns)
    fresh = came_ns - min(record.time_ns for record in records) <= FRESH_NS
    begun_ns = 0 if fresh else came_ns
    Intake.objects.get_or_create(stream_id=stream_id, defaults={"sender": sender, "begun_ns": begun_ns})
    Intake.objects.filter(stream=stream_id).exclude(sender=sender).update(sender=sender, begun_ns=came_ns)
    _keep(stream_id, records, {"came_ns": came_ns, "read_ns": read_ns, "sender": sender})


def _keep(stream_id: UUID, records: Sequence[Seen], facts: dict[str, Any]) -> None:
    data = pack(records)
    given = {"data": data, "first_ns": min(record.time_ns for record in records), **facts}
    Parcel.objects.get_or_create(stream_id=stream_id, digest=hashlib.sha256(data).hexdigest(), defaults=given)


def portion(stream_id: UUID) -> list[Parcel]:
    """The parcels with the oldest records, so many that one transaction stays short.

    What has its place next is among them, if it is here: all that waits for it is younger.
    """
    sizes = Parcel.objects.filter(stream=stream_id).annotate(size=Length("data"))
    chosen, total = [], 0
    for key, size in sizes.values_list("pk", "size"):
        chosen.append(key)
        total += size
        if total >= PORTION:
            break
    return list(Parcel.objects.filter(pk__in=chosen))


class Waiting:
    """Parcels and the records in them, each record in the first parcel that has it."""

    def __init__(self, parcels: Sequence[Parcel]) -> None:
        self.stream_id = parcels[0].stream_id
        # Of each record, by time and offset.
        self.readings: dict[tuple[int, int], Reading] = {}
        self._parcels: list[tuple[Parcel, list[Seen], int]] = []
        for parcel in parcels:
            reading = Reading(parcel.came_ns, parcel.read_ns)
            records, size = [], 0
            for record in unpack(bytes(parcel.data)):
                size += 1
                if (record.time_ns, record.offset) not in self.readings:
                    records.append(record)
                    self.readings[record.time_ns, record.offset] = reading
            self._parcels.append((parcel, records, size))

    def records(self) -> Iterable[Seen]:
        return (record for _, records, _ in self._parcels for record in records)

    def keep_only(self, rest: Sequence[Seen]) -> None:
        """Delete everything else; a parcel of which all is left stays as it is."""
        left = {(record.time_ns, record.offset) for record in rest}
        gone, again = [], []
        for parcel, records, size in self._parcels:
            kept = [record for record in records if (record.time_ns, record.offset) in left]
            if len(kept) < size:
                gone.append(parcel.pk)
                again.append((parcel, kept))
        Parcel.objects.filter(pk__in=gone).delete()
        for parcel, kept in again:
            if kept:
                facts = {"came_ns": parcel.came_ns, "read_ns": parcel.read_ns, "sender": parcel.sender}
                _keep(self.stream_id, kept, facts)


def settling_of(intake: Intake, waiting: Waiting, *, hurry: bool) -> Settling:
    """What is known of the collector, by all that waits and not only by these."""
    parcels = Parcel.objects.filter(stream=intake.stream_id).order_by()
    known = parcels.aggregate(
        heard_ns=Max("came_ns"),
        size=Sum(Length("data")),
        sure_ns=Max("read_ns", filter=Q(sender=intake.sender)),
    )
    return Settling(
        readings=waiting.readings,
        begun_ns=intake.begun_ns,
        sure_ns=known["sure_ns"] or 0,
        heard_ns=known["heard_ns"],
        grown_ns=intake.grown_ns,
        now_ns=int(now().timestamp() * NANO),
        blank=not intake.spans,
        hurry=hurry or known["size"] > CROWDED,
    )
