"""Costs as pages, API and exports read them. Amounts are rounded once, as MONEY.md says; `raw` is exact."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """A pod's hold on one resource under one price. `raw`: seconds × units × price, to be divided by 3600.

    `sku`: the GPU model, "cpu" or "memory". `provisional`: still running, or not charged yet.
    """

    pod_name: str
    attempt_number: int
    resource: str
    sku: str
    units: Decimal
    started_at: datetime
    ended_at: datetime
    seconds: int
    price_per_hour: Decimal
    raw: Decimal
    amount: Decimal
    estimated: bool = False
    provisional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCost:
    """What a job costs: `final` once nothing can change it, else `so_far`. Both None: nothing it used has a price.

    `missing` names what has no price; an amount beside it is only a part. `free`: all it used has the price 0.
    """

    final: Decimal | None
    so_far: Decimal | None
    provisional: bool
    currency: str
    missing: tuple[str, ...] = ()
    free: bool = False
    lines: tuple[CostLine, ...] = ()

    @property
    def amount(self) -> Decimal | None:
        """The figure to show, whichever it is."""
        return self.so_far if self.final is None else self.final

    @property
    def under_a_cent(self) -> bool:
        """Whether it cost something, and less than can be shown."""
        return self.amount == 0 and any(line.raw for line in self.lines)


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a month. The amounts of all parts together are exactly the month's total."""

    label: str
    amount: Decimal
    gpu_seconds: Decimal


@dataclass(frozen=True, slots=True)
class DayShare:
    """One day of a month, in the site's time zone."""

    day: date
    amount: Decimal
    gpu_seconds: Decimal


@dataclass(frozen=True, slots=True)
class JobShare:
    """What one job cost in a month. `under_a_cent`: something, and less than can be shown."""

    job_id: UUID
    name: str
    person: str
    amount: Decimal
    gpu_seconds: Decimal
    under_a_cent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamMonth:
    """What a team used in one month. `total` includes `provisional`: what still runs or is not charged yet.

    None: nothing that was used has a price. `missing` names what has none; the total is then only a part.
    """

    month: date
    currency: str
    total: Decimal | None
    provisional: Decimal
    gpu_seconds: Decimal
    jobs_count: int
    missing: tuple[str, ...]
    by_day: tuple[DayShare, ...]
    by_model: tuple[Share, ...]
    by_person: tuple[Share, ...]
    by_template: tuple[Share, ...]
    # The ten dearest.
    jobs: tuple[JobShare, ...]
