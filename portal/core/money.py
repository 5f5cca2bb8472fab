"""Money: exact decimals inside, one rounding at the edge."""

from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal

CENT = Decimal("0.01")
SECONDS_PER_HOUR = 3600
# Wide enough that seconds x units x price never loses a digit; the division by 3600 happens once, at the edge.
EXACT = Context(prec=60)


def raw_cost(*, seconds: int, units: Decimal, price_per_hour: Decimal) -> Decimal:
    """`seconds x units x price`, an exact decimal in currency-seconds per hour; divide by 3600 only to show it."""
    return EXACT.multiply(EXACT.multiply(Decimal(seconds), units), price_per_hour)


def to_amount(raw: Decimal) -> Decimal:
    """Currency from a raw cost: divided by 3600, rounded half to even to cents, once."""
    return EXACT.divide(raw, Decimal(SECONDS_PER_HOUR)).quantize(CENT, rounding=ROUND_HALF_EVEN)


def whole_seconds(span: timedelta) -> int:
    """Whole seconds of a span; never negative, because a clock that runs backwards earns nobody money."""
    return max(0, span.days * 86_400 + span.seconds)
