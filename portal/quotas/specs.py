"""The numbers of queues as plain data."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Quota:
    """What one ClusterQueue has of one resource in one flavor. cpu in cores, memory in GiB, else pieces."""

    cluster_queue: str
    cohort: str
    flavor: str
    resource: str
    nominal: Decimal
    borrowing_limit: Decimal | None = None


@dataclass(frozen=True, slots=True)
class FlavorRow:
    """A ResourceFlavor with GPUs in a queue: its nominal GPUs, and the most that the queue may ever give."""

    name: str
    label: str
    gpu_model: str
    gpu_resource: str
    nominal: Decimal
    most: Decimal
    pretended: bool = False
    node_labels: tuple[tuple[str, str], ...] = ()
