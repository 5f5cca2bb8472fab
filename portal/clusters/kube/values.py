"""Kubernetes' scalar values, read without trust: whatever is missing, null or of another shape is "not said".

Nothing here raises: a list of a thousand objects must not fail because of one odd field.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

GIB = Decimal(1024**3)

# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,9})?", re.ASCII
)
_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> Iterator[Mapping[str, Any]]:
    """The objects of a list; anything else in it, or another shape, is passed over."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def text(value: object) -> str:
    """The value if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """The value if it is a whole number, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def number(value: object) -> int | None:
    """The value if it is a whole number (or its digits), else None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    digits = isinstance(value, str) and len(value) < 20 and value.isascii() and value.isdigit()
    return int(str(value)) if digits else None


def time(value: object) -> datetime | None:
    """An RFC 3339 time as an aware datetime in UTC; None where there is none.

    Go's zero time and Unix's are none: a container that could not be started has "1970-01-01T00:00:00Z" as its start.
    """
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if moment.year > 1970 else None


def quantity(value: object) -> Decimal | None:
    """A Kubernetes quantity such as "8", "500m", "64Gi", "1e3" or 2 in its base unit (cores, bytes, pieces)."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None:
        return None
    suffix = match["suffix"] or ""
    # "12E" is exa, "12E3" and "12e3" are exponents.
    factor = _SUFFIXES[suffix] if suffix in _SUFFIXES else Decimal(10) ** max(-30, min(30, int(suffix[1:])))
    return Decimal(match["number"]) * factor


def amount(resource: str, value: object) -> Decimal | None:
    """A quantity in the portal's units: memory and the like in GiB, all else in its base unit."""
    found = quantity(value)
    if found is not None and (resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-")):
        return found / GIB
    return found
