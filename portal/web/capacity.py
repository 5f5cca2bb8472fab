"""How pages name what is free. The numbers are `quotas.policy`'s, over what `jobs.selectors.holding` knows is held."""

import re

from portal.clusters.models import ResourceFlavor
from portal.jobs.selectors import Want, admitted, free_by_model, held_by, limit_seconds, waiting, waiting_jobs
from portal.quotas.policy import ModelRoom, Row, models_of
from portal.quotas.selectors import rows_now as rows

__all__ = [
    "ModelRoom",
    "Row",
    "Want",
    "admitted",
    "free_by_model",
    "gpu_words",
    "held_by",
    "limit_seconds",
    "memory_beside",
    "models_of",
    "rows",
    "waiting",
    "waiting_jobs",
]


def gpu_words(flavor: ResourceFlavor) -> str:
    """A short name for narrow places."""
    return flavor.short_label


def memory_beside(flavor: ResourceFlavor) -> int | None:
    """GiB of one GPU, to stand beside its name; None where the name says it already, as in "H100 80GB HBM3"."""
    said = re.search(r"[0-9] ?Gi?B", flavor.gpu_model)
    return None if said else flavor.gpu_memory_gib
