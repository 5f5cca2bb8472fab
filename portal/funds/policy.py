"""Which price counts when, what an estimate says, and which prices may be entered. Pure; the rows come loaded."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

from portal.core.errors import Problem
from portal.core.money import CENT, EXACT, raw_cost, to_amount
from portal.funds.models import Price, PricedResource
from portal.funds.specs import Estimate, EstimateLine

# As the column holds them: 18 digits, 10 of them behind the point.
DECIMALS = 10
MOST = Decimal(10) ** 8


def price_at(prices: Iterable[Price], *, resource: str, gpu_model: str, at: datetime) -> Price | None:
    """The price of one unit at a moment: of those valid by then, the one that began last."""
    valid = [p for p in prices if p.resource == resource and p.gpu_model == gpu_model and p.valid_from <= at]
    return max(valid, key=lambda price: price.valid_from, default=None)


def estimate(
    prices: Iterable[Price],
    *,
    gpus: int,
    gpu_models: Sequence[str],
    cores: Decimal,
    gib: Decimal,
    runs: int,
    seconds: int | None,
    at: datetime,
    currency: str,
) -> Estimate:
    """What a job costs at most: `gpus`, `cores` and `gib` are per run, all `runs` use the whole limit of `seconds`.

    `gpu_models` are those it may be given; several are counted as the dearest, because it is "at most".

    A GPU without a price makes the sum unknown. Cores and memory count where they have a price; a job without GPUs
    for which nothing has a price lacks one for "cpu", so that it never reads as free.
    """
    kept = [price for price in prices if price.currency == currency]
    lines: list[EstimateLine] = []
    if gpus:
        lines.append(_dearest(kept, gpu_models, Decimal(gpus * runs), at))
    for resource, units in ((PricedResource.CPU, cores), (PricedResource.MEMORY, gib)):
        line = _line(kept, resource, "", units * runs, at)
        if line.price_per_hour is not None:
            lines.append(line)
    if not lines:
        lines.append(_line(kept, PricedResource.CPU, "", cores * runs, at))
    return _estimate(lines, seconds=seconds, currency=currency)


def estimate_as_given(told: Estimate, prices: Iterable[Price], *, gpu_model: str, at: datetime) -> Estimate:
    """What was estimated for any of several models, for the one that the job was given, at that moment's prices."""
    if not gpu_model or all(line.resource != PricedResource.GPU or line.sku == gpu_model for line in told.lines):
        return told
    kept = [price for price in prices if price.currency == told.currency]
    lines = [
        _line(kept, PricedResource.GPU, gpu_model, line.units, at) if line.resource == PricedResource.GPU else line
        for line in told.lines
    ]
    return _estimate(lines, seconds=told.seconds, currency=told.currency)


def _estimate(lines: Sequence[EstimateLine], *, seconds: int | None, currency: str) -> Estimate:
    missing = tuple(line.sku for line in lines if line.price_per_hour is None)
    return Estimate(
        seconds=seconds,
        amount=None if missing or seconds is None else _sum(lines, seconds),
        per_hour=None if missing else _sum(lines, 3600),
        currency=currency,
        lines=tuple(lines),
        missing=missing,
    )


def _dearest(prices: list[Price], gpu_models: Sequence[str], units: Decimal, at: datetime) -> EstimateLine:
    """The line of the dearest model; one without a price makes the most unknown, so it comes first."""
    lines = [_line(prices, PricedResource.GPU, model, units, at) for model in gpu_models or [""]]
    unpriced = [line for line in lines if line.price_per_hour is None]
    return unpriced[0] if unpriced else max(lines, key=lambda line: line.price_per_hour or Decimal(0))


def _line(prices: list[Price], resource: PricedResource, gpu_model: str, units: Decimal, at: datetime) -> EstimateLine:
    price = price_at(prices, resource=resource, gpu_model=gpu_model, at=at) if gpu_model or resource != "gpu" else None
    sku = (gpu_model or "GPU") if resource == PricedResource.GPU else str(resource)
    return EstimateLine(str(resource), units, price.amount if price else None, sku)


def _sum(lines: Sequence[EstimateLine], seconds: int) -> Decimal:
    raw = Decimal(0)
    for line in lines:
        if line.price_per_hour is not None:
            one = raw_cost(seconds=seconds, units=line.units, price_per_hour=line.price_per_hour)
            raw = EXACT.add(raw, one)
    return to_amount(raw).quantize(CENT, rounding=ROUND_HALF_EVEN)


def read_amount(text: str) -> Decimal | Problem:
    """A price per hour as typed, or what is wrong with it."""
    try:
        amount = Decimal(text.strip().replace(",", "."))
    except InvalidOperation:
        return Problem("amount", f"{text.strip()[:40]!r} is not a number. Write it like 2.40.")
    return amount_problem(amount) or amount


def amount_problem(amount: Decimal) -> Problem | None:
    """Why this cannot be a price per hour, or None. The column keeps 10 decimals exactly and rounds nothing."""
    if not amount.is_finite():
        return Problem("amount", "A price is a number, such as 2.40.")
    if amount < 0 or (amount.is_zero() and amount.is_signed()):
        return Problem("amount", "A price cannot be below 0. Enter 0 for what shall be free.")
    if amount >= MOST:
        return Problem("amount", f"A price per hour must be below {MOST:,.0f}.")
    exponent = amount.normalize().as_tuple().exponent
    if isinstance(exponent, int) and -exponent > DECIMALS:
        return Problem("amount", f"A price can have {DECIMALS} decimals at most; this has {-exponent}.")
    return None


def price_problems(
    prices: Iterable[Price],
    *,
    resource: str,
    gpu_model: str,
    amount: Decimal,
    currency: str,
    valid_from: datetime,
    at: datetime,
    site_currency: str,
) -> list[Problem]:
    """Everything that speaks against entering this price now."""
    problems = []
    wrong = amount_problem(amount)
    if wrong:
        problems.append(wrong)
    if resource not in PricedResource.values:
        problems.append(Problem("resource", f"{resource!r} has no price. Take gpu, cpu or memory."))
    if (resource == PricedResource.GPU) != bool(gpu_model):
        wanted = "Name the GPU model." if resource == PricedResource.GPU else "Only a price of GPUs names a model."
        problems.append(Problem("gpu_model", wanted))
    if currency != site_currency:
        problems.append(Problem("currency", f"This site counts in {site_currency}, not in {currency}."))
    same = [price for price in prices if price.resource == resource and price.gpu_model == gpu_model]
    if any(price.valid_from == valid_from for price in same):
        problems.append(Problem("valid_from", "There is a price from that moment on already. Take a later one."))
    elif valid_from < at and any(price.valid_from < at for price in same):
        # What was used since then is charged at the price that was in force; no later entry may change that.
        problems.append(
            Problem("valid_from", "A price is in force for that time already. Leave this empty to begin now.")
        )
    return problems
