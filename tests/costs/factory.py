"""Intervals for tests of costs, made as `usage.services.record` would leave them."""

import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from portal.jobs.models import Job
from portal.usage.models import EndSource, Interval

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
_numbers = itertools.count(1)


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def hold(job: Job, start: datetime = NOON, seconds: int | None = 3600, **fields: Any) -> Interval:
    """A closed interval of one H100; `seconds=None` leaves it open."""
    number = next(_numbers)
    closed = (
        {} if seconds is None else {"ended_at": start + timedelta(seconds=seconds), "end_source": EndSource.CONTAINERS}
    )
    values: dict[str, Any] = {
        "team_id": job.team_id,
        "attempt_number": 1,
        "pod_uid": f"u-{number}",
        "pod_name": f"p-{number}",
        "resource": "nvidia.com/gpu",
        "units": Decimal(1),
        "gpu_model": "NVIDIA H100",
        "started_at": start,
        "seen_at": start,
        **closed,
        **fields,
    }
    if values["resource"] in {"cpu", "memory"}:
        values["gpu_model"] = ""
    return Interval.objects.create(job=job, **values)
