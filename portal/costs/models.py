"""Charges: the one ledger that every page, API answer and export sums."""

import uuid
from decimal import Decimal

from django.db import models

from portal.core.money import raw_cost
from portal.funds.models import Price
from portal.jobs.models import Job
from portal.teams.models import Team
from portal.usage.models import Interval


class ChargeLine(models.Model):
    """A closed interval, or the piece of it under one price. Append-only: the database refuses change and deletion.

    `raw` is `seconds × units × price`, exact; divided by 3600 and rounded only where money is shown (core.money).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    interval = models.ForeignKey(Interval, on_delete=models.PROTECT, related_name="charge_lines")
    price = models.ForeignKey(Price, on_delete=models.PROTECT, related_name="charge_lines")
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="charge_lines")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="charge_lines")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    seconds = models.PositiveBigIntegerField()
    units = models.DecimalField(max_digits=12, decimal_places=3)
    price_per_hour = models.DecimalField(max_digits=18, decimal_places=10)
    currency = models.CharField(max_length=3)
    raw = models.DecimalField(max_digits=38, decimal_places=13)
    estimated = models.BooleanField(default=False)

    class Meta:
        ordering = ["started_at", "id"]
        constraints = [models.UniqueConstraint(fields=["interval", "started_at"], name="charge_once")]
        indexes = [
            models.Index(fields=["team", "started_at"], name="charges_of_team"),
            models.Index(fields=["job"], name="charges_of_job"),
        ]

    def __str__(self) -> str:
        return f"{self.seconds} s × {self.units.normalize():f}"

    @property
    def exact(self) -> Decimal:
        """`raw` with all its digits; what every reader sums, because SQLite keeps 15 digits of a decimal column."""
        return raw_cost(seconds=self.seconds, units=self.units, price_per_hour=self.price_per_hour)


class Unpriced(models.Model):
    """A closed interval of which a part has no price: no charge, and never shown as one of 0.00.

    Looked at again when a newer price has been entered.
    """

    interval = models.OneToOneField(Interval, primary_key=True, on_delete=models.PROTECT, related_name="unpriced")
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="unpriced")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="unpriced")
    # What lacks the price: a GPU model, "cpu" or "memory".
    sku = models.CharField(max_length=80)
    seconds = models.PositiveBigIntegerField()
    # Number of the newest price for it that was known when this was worked out; 0: there was none.
    newest_price = models.PositiveBigIntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["sku", "newest_price"], name="unpriced_to_look_at")]
        verbose_name = "unpriced interval"

    def __str__(self) -> str:
        return f"{self.seconds} s without a price"
