"""The cost card of a job: what it costs so far or cost in the end, of how much at most, and by which formula. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone
from django.utils.dateformat import format as format_date
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.core.money import whole_seconds
from portal.costs.policy import NOT_GPU
from portal.costs.specs import CostLine, JobCost
from portal.funds.models import Price, PricedResource
from portal.funds.policy import estimate_as_given, price_at
from portal.funds.specs import Estimate
from portal.jobs.models import Job
from portal.web.templatetags.beamtime import duration, money, number, spent

_HOUR = 3600
_PATIENCE = timedelta(minutes=15)
# More prices than these are told on the page of lines only.
MOST_FORMULAS = 3


@dataclass(slots=True)
class Money:
    """`gpu` is the job's model in words, with "(pretended)" where it is; `prices` tell from when a price is."""

    job: Job
    cost: JobCost
    prices: Sequence[Price]
    gpu: str

    @property
    def estimate(self) -> Estimate | None:
        """What was said before the click, for the GPU model that it was then given; None for a job that has none."""
        if not self.job.estimate:
            return None
        told = Estimate.from_json(self.job.estimate)
        return estimate_as_given(told, self.prices, gpu_model=self.job.gpu_model, at=self.job.submitted_at)

    @property
    def at_most(self) -> Decimal | None:
        """What the amount is a part of; None for who never held anything, and where no most is known."""
        return self.estimate.amount if self.estimate and self.cost.lines else None

    @property
    def waits(self) -> bool:
        """Nothing has been held yet, and something may be."""
        begun = self.job.is_over or self.job.started_at is not None
        return not begun and not self.cost.lines and not self.cost.missing

    @property
    def unknown(self) -> bool:
        """Nothing that it used has a price."""
        return self.cost.amount is None and bool(self.cost.missing)

    @property
    def lead(self) -> str:
        """The figure itself; what rounds to nothing and is not free says so."""
        if self.cost.free:
            return _("free")
        return spent(self.cost)

    def settled(self, moment: datetime) -> bool:
        """Whether no number of the page will change any more; after a while nobody waits for that."""
        ended = self.job.ended_at
        return self.job.is_over and (self.cost.final is not None or ended is None or moment - ended > _PATIENCE)

    @property
    def status(self) -> str:
        """What kind of number it is."""
        if self.waits:
            return _("waiting costs nothing")
        if self.cost.final is not None:
            return _("final")
        return _("being settled") if self.job.is_over else _("so far, updates every 10 s")

    @property
    def note(self) -> str:
        """The last line of the card."""
        if self.waits:
            return _("The count begins with a node.")
        if self.cost.final is None:
            return _("Provisional until it has ended.") if not self.job.is_over else _("Counted within a minute.")
        if not self.cost.lines and not self.cost.missing:
            return _("It ended within a second.") if self.job.started_at else _("No node was given to it.")
        return _("Nothing changes it any more.")

    @property
    def bar(self) -> dict[str, Any] | None:
        """`parts` and `tick` for components/bar.html; None where there is nothing to compare."""
        amount, most = self.cost.amount, self.at_most
        if not amount or not most:
            return None
        whole = max(amount, most)
        return {
            "parts": [{"tone": "accent", "x": 0, "width": float(amount / whole * 100)}],
            "tick": float(most / whole * 100) if amount > most else None,
        }

    @property
    def formulas(self) -> list[str]:
        """ "2 × H100 80 GB held for 24 s at €2.40 per GPU-hour (price of 1 Oct 2026)", one for each price."""
        groups: dict[tuple[str, str, Decimal], list[CostLine]] = {}
        for line in self.cost.lines:
            groups.setdefault((line.resource, line.sku, line.price_per_hour), []).append(line)
        dearest = sorted(groups.values(), key=lambda lines: -sum(line.raw for line in lines))
        return [self._formula(lines) for lines in dearest[:MOST_FORMULAS]]

    def _formula(self, lines: Sequence[CostLine]) -> str:
        first = lines[0]
        is_gpu = first.resource not in NOT_GPU
        resource = PricedResource.GPU if is_gpu else PricedResource(first.resource)
        parts = {
            "price": money(first.price_per_hour, "price"),
            "unit": resource.label,
            "since": self._since(first, resource),
        }
        if len({(line.pod_name, line.units) for line in lines}) == 1:
            held = timedelta(seconds=sum(line.seconds for line in lines))
            what, time = self._what(first, is_gpu=is_gpu), duration(whole_seconds(held))
            return format_html(_("{what} held for {time} at {price} per {unit}{since}."), what=what, time=time, **parts)
        hours = sum((line.units * line.seconds for line in lines), Decimal(0)) / _HOUR
        words = {
            PricedResource.GPU: _("%(n)s GPU-hours of %(gpu)s"),
            PricedResource.CPU: _("%(n)s core-hours"),
            PricedResource.MEMORY: _("%(n)s GiB-hours of memory"),
        }
        what = words[resource] % {"n": number(hours, 2), "gpu": self.gpu}
        return format_html(_("{what} at {price} each{since}."), what=what, **parts)

    def _what(self, line: CostLine, *, is_gpu: bool) -> str:
        units = f"{line.units.normalize():f}"
        if is_gpu:
            return f"{units} × {self.gpu}"
        if line.resource == "cpu":
            return ngettext("%(n)s core", "%(n)s cores", 1 if line.units == 1 else 2) % {"n": units}
        return _("%(n)s GiB of memory") % {"n": units}

    def _since(self, line: CostLine, resource: PricedResource) -> str:
        model = line.sku if resource == PricedResource.GPU else ""
        found = price_at(self.prices, resource=resource, gpu_model=model, at=line.started_at)
        if found is None:
            return ""
        return _(" (price of %(day)s)") % {"day": format_date(timezone.localtime(found.valid_from), "j M Y")}
