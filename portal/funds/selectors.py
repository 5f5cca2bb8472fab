"""Reads of prices."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db.models import QuerySet

from portal.funds import policy
from portal.funds.models import Price
from portal.funds.specs import Estimate


def prices() -> QuerySet[Price]:
    """Every price, the newest of each resource first. There are few, so callers load them all. One query."""
    return Price.objects.all()


def estimate_for(
    *, gpus: int, gpu_models: Sequence[str], cores: Decimal, gib: Decimal, runs: int, seconds: int | None, at: datetime
) -> Estimate:
    """What a job costs at most at the prices of a moment. `gpus`, `cores`, `gib` per run. One query.

    Of several `gpu_models` that it may be given, the dearest counts.
    """
    return policy.estimate(
        prices(),
        gpus=gpus,
        gpu_models=gpu_models,
        cores=cores,
        gib=gib,
        runs=runs,
        seconds=seconds,
        at=at,
        currency=settings.BEAMTIME_CURRENCY,
    )
