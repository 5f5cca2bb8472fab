"""Estimates as they cross borders."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class EstimateLine:
    """One kind of resource. `units`: GPUs, cores or GiB of all runs together; the price is None where there is none.

    `sku` is what people read: the GPU model, "cpu" or "memory".
    """

    resource: str
    units: Decimal
    price_per_hour: Decimal | None
    sku: str

    @property
    def per_hour(self) -> Decimal | None:
        """What the line costs in one hour, exact."""
        return None if self.price_per_hour is None else self.units * self.price_per_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a job costs at most, before it has run.

    `amount` is for `seconds`, the time limit, rounded to cents; None when there is no limit or a price is missing.
    `per_hour` is what every hour costs while all runs go on; None when a price is missing. `missing` names what has no
    price, in the words of `EstimateLine.sku`.
    """

    seconds: int | None
    amount: Decimal | None
    per_hour: Decimal | None
    currency: str
    lines: tuple[EstimateLine, ...] = ()
    missing: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; decimals as texts, so that no digit is lost."""
        return {
            "seconds": self.seconds,
            "amount": _text(self.amount),
            "per_hour": _text(self.per_hour),
            "currency": self.currency,
            "lines": [
                {
                    "resource": line.resource,
                    "units": str(line.units),
                    "price_per_hour": _text(line.price_per_hour),
                    "sku": line.sku,
                }
                for line in self.lines
            ],
            "missing": list(self.missing),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The estimate again from `to_json`."""
        return cls(
            seconds=data["seconds"],
            amount=_decimal(data["amount"]),
            per_hour=_decimal(data["per_hour"]),
            currency=data["currency"],
            lines=tuple(
                EstimateLine(line["resource"], Decimal(line["units"]), _decimal(line["price_per_hour"]), line["sku"])
                for line in data["lines"]
            ),
            missing=tuple(data["missing"]),
        )


def _text(value: Decimal | None) -> str | None:
    return None if value is None else f"{value:f}"


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
