"""When a pod holds its devices, read from the cluster's own times. Pure. The definition stands in OCCUPIED.md."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from portal.clusters.specs import ContainerFacts, PodFacts
from portal.usage.models import EndSource

CPU, MEMORY = "cpu", "memory"
_OVER = frozenset({"Succeeded", "Failed"})
_UNITS = Decimal("0.001")


class End(NamedTuple):
    """When a pod let go of its devices, and how that is known. `estimated`: nobody saw the real end."""

    at: datetime
    source: EndSource
    estimated: bool


def whole(moment: datetime) -> datetime:
    """Kubernetes keeps whole seconds; where a backend is finer, the fraction is cut at both ends alike."""
    return moment.replace(microsecond=0)


def start_of(pod: PodFacts) -> datetime | None:
    """When the pod was bound to its node; None for a pod that no node was ever given to, which holds nothing."""
    return None if pod.scheduled_at is None else whole(pod.scheduled_at)


def end_of(pod: PodFacts) -> End | None:
    """When the pod let go, or None while it holds on. A pod that is being deleted still holds on."""
    lives = _last_lives(pod.containers)
    ended = bool(lives) and all(life.state == "terminated" for life in lives)
    if pod.phase in _OVER or ended:
        finished = [life.finished_at for life in pod.containers if life.finished_at is not None]
        if finished and ended:
            return End(whole(max(finished)), EndSource.CONTAINERS, False)
        if pod.gone and pod.gone_at is not None:
            return _deletion(pod, pod.gone_at)
        # Ended, but no container says when, as after the loss of a node or a refusal by it: the last word on the pod.
        told = finished + [condition.at for condition in pod.conditions if condition.at is not None]
        return End(whole(max(told)), EndSource.INFERRED, True) if told else None
    if pod.gone and pod.gone_at is not None:
        return _deletion(pod, pod.gone_at)
    return None


def _deletion(pod: PodFacts, at: datetime) -> End:
    """The end of a pod that was deleted, as it was seen.

    Estimated where nobody saw it coming: then it vanished while nobody was looking. And where a container still reads
    as running: a kubelet tells of its containers' ends before it lets a pod go, so the pod was taken off a silent node.
    """
    unseen = pod.deletion_requested_at is None or any(life.state == "running" for life in _last_lives(pod.containers))
    return End(whole(at), EndSource.INFERRED if unseen else EndSource.DELETION, unseen)


def _last_lives(containers: Iterable[ContainerFacts]) -> list[ContainerFacts]:
    last: dict[str, ContainerFacts] = {}
    for life in containers:
        if life.name not in last or life.restart >= last[life.name].restart:
            last[life.name] = life
    return list(last.values())


def holdings(requests: Mapping[str, Decimal], gpu_resources: Iterable[str]) -> dict[str, Decimal]:
    """What of a pod's request is counted: GPUs, cores and GiB, to a thousandth; nothing of which it asks nothing."""
    counted = {CPU, MEMORY, *gpu_resources}
    amounts = {name: Decimal(amount).quantize(_UNITS) for name, amount in requests.items() if name in counted}
    return {name: amount for name, amount in amounts.items() if amount > 0}
