"""Which queue a job goes to, what can be chosen there, and whether it can ever fit. Pure over a loaded book."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from portal.catalog.policy import wants_gpus
from portal.catalog.specs import Definition, FlavorChoice, From, Node, Offer
from portal.clusters.specs import WorkSpec
from portal.core.errors import Problem
from portal.quotas.models import ClusterQueue
from portal.quotas.policy import QueueBook
from portal.quotas.specs import FlavorRow


def choose_queue(
    book: QueueBook, definition: Definition, values: Mapping[str, Any], wanted: str
) -> ClusterQueue | Problem:
    """The queue asked for, or the one that suits the unchecked values; or why there is none.

    Queues with GPUs are kept for jobs that ask for GPUs, as long as the team has another queue.
    """
    names = ", ".join(queue.name for queue in book.queues)
    if not book.queues:
        return Problem("queue", "No ClusterQueue is open to this team. Ask an administrator to open one.", "none")
    gpus = wants_gpus(definition, values)
    plain = [queue for queue in book.queues if not book.gpu_flavors(queue)]
    if wanted:
        queue = book.queue(wanted)
        if queue is None:
            return Problem(
                "queue", f"There is no ClusterQueue {wanted[:80]!r} for this team. There are: {names}.", "unknown"
            )
        if not gpus and plain and queue not in plain:
            message = f"ClusterQueue {queue.name} is kept for jobs that ask for GPUs. Take {plain[0].name}."
            return Problem("queue", message, "gpu_queue")
        return queue
    suited = _with_flavor(book, _flavor_in(definition, values)) if gpus else plain
    return _preferred(suited or book.queues, definition.queue)


def offer_of(book: QueueBook, queues: Iterable[ClusterQueue]) -> Offer:
    """The GPU flavors of these queues together, and the names of all queues open to the team."""
    found: dict[str, FlavorChoice] = {}
    for queue in queues:
        for row in book.gpu_flavors(queue):
            most = max(int(row.most), found[row.name].most if row.name in found else 0)
            found[row.name] = FlavorChoice(row.name, row.label, row.gpu_model, most, row.pretended)
    return Offer(tuple(found[name] for name in sorted(found)), tuple(queue.name for queue in book.queues))


def flavor_of(book: QueueBook, queue: ClusterQueue, work: WorkSpec) -> FlavorRow | None:
    """The flavor whose GPUs the job will have: the one asked for, or the only one there is; None if Kueue decides."""
    if not work.gpus:
        return None
    rows = [row for row in book.gpu_flavors(queue) if work.flavor in ("", row.name)]
    return rows[0] if len(rows) == 1 else None


def fit_problems(book: QueueBook, queue: ClusterQueue, definition: Definition, work: WorkSpec) -> list[Problem]:
    """Everything for which the job asks more than the queue can ever give, with both numbers.

    Kueue admits all pods that run at once together, so it is their sum that must fit.
    """
    at_once = work.at_once
    problems = []
    for resource, unit, each, node in _asks(book, queue, definition, work):
        most = _most(book, queue, resource, work)
        if most is None and resource in ("cpu", "memory"):
            # Some sites leave cores or memory out of Kueue's accounts; then nothing is known against it.
            continue
        asked = each * at_once
        if asked > (most or 0):
            field = _field(definition, node, at_once)
            problems.append(Problem(field, _never(asked, most or Decimal(0), each, at_once, unit), "never_fits"))
    return problems


def _asks(
    book: QueueBook, queue: ClusterQueue, definition: Definition, work: WorkSpec
) -> Iterable[tuple[str, str, Decimal, Node]]:
    if work.gpus:
        rows = [row for row in book.gpu_flavors(queue) if work.flavor in ("", row.name)]
        yield (rows[0].gpu_resource if rows else "nvidia.com/gpu"), "GPUs", Decimal(work.gpus), definition.work.gpus
    yield "cpu", "cores", Decimal(work.cpu_millicores) / 1000, definition.work.cpu
    yield "memory", "GiB of memory", Decimal(work.memory_mib) / 1024, definition.work.memory


def _most(book: QueueBook, queue: ClusterQueue, resource: str, work: WorkSpec) -> Decimal | None:
    """In the flavor asked for if that has the resource, since Kueue takes GPUs, cores and memory from one flavor."""
    in_flavor = book.largest(queue, resource, work.flavor) if work.flavor else None
    return in_flavor if in_flavor is not None else book.largest(queue, resource)


def _never(asked: Decimal, most: Decimal, each: Decimal, at_once: int, unit: str) -> str:
    if at_once > 1:
        runs = int(most // each)
        remedy = f"Let {runs} run at once." if runs else f"Ask {_number(most)} or fewer for each."
        ask = f"{at_once} runs at once ask {_number(asked)} {unit}"
    else:
        remedy = f"Take {_number(most)} or fewer."
        ask = f"it asks {_number(asked)} {unit}"
    return f"Can never fit: {ask}, the most this queue can give is {_number(most)}. {remedy}"


def _field(definition: Definition, node: Node, at_once: int) -> str:
    """The parameter to change: the one that is too large, or for many runs how many go at once."""
    for candidate in (definition.work.parallelism, definition.work.runs, node) if at_once > 1 else (node,):
        if isinstance(candidate, From):
            return f"values.{candidate.name}"
    return "queue"


def _flavor_in(definition: Definition, values: Mapping[str, Any]) -> str:
    parameter = definition.gpu
    value = values.get(parameter.name) or parameter.default if parameter is not None else None
    flavor = value.get("flavor") if isinstance(value, Mapping) else ""
    return flavor if isinstance(flavor, str) else ""


def _with_flavor(book: QueueBook, flavor: str) -> list[ClusterQueue]:
    """Queues that have the flavor; those with any GPUs if none has it, so that the flavor is what gets refused."""
    any_gpus = [queue for queue in book.queues if book.gpu_flavors(queue)]
    named = [queue for queue in any_gpus if flavor in {row.name for row in book.gpu_flavors(queue)}]
    return named or any_gpus


def _preferred(queues: Iterable[ClusterQueue], name: str) -> ClusterQueue:
    kept = list(queues)
    return next((queue for queue in kept if queue.name == name), kept[0])


def _number(value: Decimal) -> str:
    return f"{value.normalize():f}"
