"""Who may start, by the rules of a Kueue ClusterQueue, as a pure function.

Strategy BestEffortFIFO without preemption: the oldest first; one that does not fit lets younger ones pass. A queue may
borrow what the other queues of its cohort leave unused, up to its borrowing limit. Flavors are tried in the queue's
order, and all resources of one resource group come from one flavor. The messages are Kueue's (flavorassigner.go), so
that whatever reads a real cluster's reads these too.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from portal.clusters.specs import FlavorQuota, FlavorSpec, QueueSnapshot, QueueSpec

POD_SET = "main"
NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Ask:
    """A job that waits: what all pods that may run at once need together; cpu in cores, memory in GiB."""

    key: str
    cluster_queue: str
    requests: Mapping[str, Decimal]
    # Name of the ResourceFlavor asked for; "" leaves the choice to the queue.
    flavor: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)

    @property
    def shape(self) -> object:
        """The same for all asks that differ in their key only."""
        return self.cluster_queue, self.flavor, tuple(self.requests.items()), tuple(self.node_selector.items())


@dataclass(frozen=True, slots=True)
class Holding:
    """What an admitted job holds now. `flavors`: resource name -> ResourceFlavor."""

    cluster_queue: str
    requests: Mapping[str, Decimal]
    flavors: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`flavors` when admitted; else None with Kueue's reason and message."""

    key: str
    flavors: Mapping[str, str] | None
    reason: str
    message: str


def decide(snapshot: QueueSnapshot, holdings: Iterable[Holding], asks: Sequence[Ask]) -> list[Verdict]:
    """A verdict for each ask, given oldest first. Each admission counts for the asks behind it."""
    books = _Books(snapshot, holdings)
    verdicts = []
    # Of a thousand alike that wait, one is judged; whatever is admitted may change the words for the rest.
    known: dict[object, Verdict] = {}
    for ask in asks:
        verdict = known.get(ask.shape) or _judge(books, ask)
        if verdict.flavors is None:
            known[ask.shape] = verdict
        else:
            known.clear()
            books.add(Holding(ask.cluster_queue, ask.requests, verdict.flavors))
        verdicts.append(replace(verdict, key=ask.key))
    return verdicts


class _Books:
    """Quotas, and what is used of them, by (queue, flavor, resource)."""

    def __init__(self, snapshot: QueueSnapshot, holdings: Iterable[Holding]) -> None:
        self.queues = {queue.name: queue for queue in snapshot.queues}
        self.flavors = {flavor.name: flavor for flavor in snapshot.flavors}
        self._used: dict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
        for holding in holdings:
            self.add(holding)

    def add(self, holding: Holding) -> None:
        for resource, amount in holding.requests.items():
            flavor = holding.flavors.get(resource)
            if flavor is not None:
                self._used[holding.cluster_queue, flavor, resource] += amount

    def room(self, queue: QueueSpec, quota: FlavorQuota) -> tuple[Decimal, Decimal]:
        """(unused now, the most there can ever be) for this queue, what it may borrow included."""
        used = self._used[queue.name, quota.flavor, quota.resource]
        if not queue.cohort:
            return quota.nominal - used, quota.nominal
        total = total_used = NOTHING
        for other in self.queues.values():
            if other.cohort == queue.cohort:
                total_used += self._used[other.name, quota.flavor, quota.resource]
                total += sum((q.nominal for q in other.quotas if _same(q, quota)), NOTHING)
        if quota.borrowing_limit is None:
            return total - total_used, total
        own_most = quota.nominal + quota.borrowing_limit
        return min(total - total_used, own_most - used), min(total, own_most)


def _judge(books: _Books, ask: Ask) -> Verdict:
    queue = books.queues.get(ask.cluster_queue)
    if queue is None:
        return Verdict(ask.key, None, "Inadmissible", f"ClusterQueue {ask.cluster_queue} doesn't exist")
    if queue.stopped:
        return Verdict(ask.key, None, "Inadmissible", f"ClusterQueue {ask.cluster_queue} is stopped")
    flavors: dict[str, str] = {}
    clauses: set[str] = set()
    for group in _groups(queue):
        wanted = {name: amount for name, amount in ask.requests.items() if name in group}
        if wanted:
            chosen = _choose(books, queue, ask, wanted, clauses)
            flavors.update(dict.fromkeys(wanted, chosen))
    covered = {quota.resource for quota in queue.quotas}
    clauses |= {f"resource {name} unavailable in ClusterQueue" for name in ask.requests if name not in covered}
    if not clauses:
        return Verdict(ask.key, flavors, "QuotaReserved", f"Quota reserved in ClusterQueue {queue.name}")
    message = f"couldn't assign flavors to pod set {POD_SET}: {', '.join(sorted(clauses))}"
    return Verdict(ask.key, None, "Pending", message)


def _groups(queue: QueueSpec) -> list[set[str]]:
    """The queue's resource groups: resources that share a flavor belong together, as Kueue demands."""
    groups: list[set[str]] = []
    for flavor in dict.fromkeys(quota.flavor for quota in queue.quotas):
        resources = {quota.resource for quota in queue.quotas if quota.flavor == flavor}
        touching = [group for group in groups if group & resources]
        groups = [group for group in groups if not group & resources]
        groups.append(resources.union(*touching))
    return groups


def _choose(books: _Books, queue: QueueSpec, ask: Ask, wanted: Mapping[str, Decimal], clauses: set[str]) -> str:
    """The first flavor with room for everything wanted, or "" with the reasons added to `clauses`."""
    against: set[str] = set()
    candidates = dict.fromkeys(quota.flavor for quota in queue.quotas if quota.resource in wanted)
    for name in candidates:
        flavor = books.flavors.get(name)
        if flavor is None:
            against.add(f"flavor {name} not found")
        elif (ask.flavor and ask.flavor != name) or not _suits(flavor, ask.node_selector):
            against.add(f"flavor {name} doesn't match node affinity")
        else:
            short = _shortages(books, queue, name, wanted)
            if not short:
                return name
            against |= short
    clauses |= against
    return ""


def _suits(flavor: FlavorSpec, selector: Mapping[str, str]) -> bool:
    labels = dict(flavor.node_labels)
    return all(labels[name] == value for name, value in selector.items() if name in labels)


def _shortages(books: _Books, queue: QueueSpec, flavor: str, wanted: Mapping[str, Decimal]) -> set[str]:
    clauses = set()
    for resource, amount in wanted.items():
        quota = next((q for q in queue.quotas if q.flavor == flavor and q.resource == resource), None)
        if quota is None:
            clauses.add(f"resource {resource} unavailable in ClusterQueue")
            continue
        unused, most = books.room(queue, quota)
        if amount > most:
            clauses.add(
                f"insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests (0) "
                f"+ current podset request ({quantity(resource, amount)}) > maximum capacity "
                f"({quantity(resource, most)})"
            )
        elif amount > unused:
            clauses.add(
                f"insufficient unused quota for {resource} in flavor {flavor}, "
                f"{quantity(resource, amount - unused)} more needed"
            )
    return clauses


def _same(one: FlavorQuota, other: FlavorQuota) -> bool:
    return one.flavor == other.flavor and one.resource == other.resource


def quantity(resource: str, amount: Decimal) -> str:
    """A Kubernetes quantity as Kueue prints it: cores as "2" or "500m", GiB as "4Gi" or "512Mi", the rest plain."""
    if resource == "cpu" and amount != amount.to_integral_value():
        return f"{int(amount * 1000)}m"
    if resource == "memory" and amount:
        in_mib = int(amount * 1024)
        return f"{in_mib // 1024}Gi" if in_mib % 1024 == 0 else f"{in_mib}Mi"
    return f"{int(amount)}"
