"""The pure function from a definition and checked values to a WorkSpec."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

from portal.catalog.specs import Definition, Filled, From, If, Item, Join, Node, Variable
from portal.clusters.specs import WorkSpec


def render(definition: Definition, filled: Filled) -> WorkSpec:
    """What will run. `filled` must come from `clean` of the same definition. Secrets appear by their names only."""
    work, values = definition.work, filled.values
    gpus = _resource(work.gpus, values)
    count, flavor = (gpus["count"], gpus["flavor"]) if isinstance(gpus, Mapping) else (gpus or 0, "")
    return WorkSpec(
        image=_text(work.image, values),
        command=tuple(_arguments(work.command, values)),
        args=tuple(_arguments(work.args, values)),
        env=tuple(_environment(work.env, values).items()),
        secret_env=tuple(sorted(filled.secrets)),
        cpu_millicores=_millicores(_resource(work.cpu, values) or 1),
        memory_mib=_resource(work.memory, values) or 1024,
        gpus=count,
        flavor=flavor,
        runs=_resource(work.runs, values) or 1,
        parallelism=None if work.parallelism is None else _resource(work.parallelism, values),
        time_limit_seconds=None if work.time_limit is None else _resource(work.time_limit, values),
    )


def _resource(node: Node, values: Mapping[str, Any]) -> Any:
    return values.get(node.name) if isinstance(node, From) else node


def _millicores(cores: float) -> int:
    return int((Decimal(str(cores)) * 1_000).to_integral_value(rounding=ROUND_CEILING))


def _arguments(items: Iterable[Item], values: Mapping[str, Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, If):
            yield from _arguments(item.then if _holds(values.get(item.name)) else item.otherwise, values)
        else:
            yield _text(item, values)


def _holds(value: object) -> bool:
    """Given, and not "no": false, no GPUs, an empty text and an empty environment do not hold; the number 0 does."""
    if isinstance(value, Mapping):
        count = value.get("count")  # a number for GPUs; an environment has only texts
        return count > 0 if isinstance(count, int) else bool(value)
    return value is not None and value is not False and value != ""


def _environment(entries: Iterable[Variable | From], values: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, From):
            found.update(values.get(entry.name, {}))
        elif not _is_missing(entry.value, values):
            found[entry.name] = _text(entry.value, values)
    return found


def _is_missing(node: Node, values: Mapping[str, Any]) -> bool:
    if isinstance(node, From):
        return node.name not in values
    return isinstance(node, Join) and any(_is_missing(part, values) for part in node.parts)


def _text(node: Node, values: Mapping[str, Any]) -> str:
    if isinstance(node, Join):
        return "".join(_text(part, values) for part in node.parts)
    value = values[node.name] if isinstance(node, From) else node
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return str(value["count"])  # of the kinds with parts only gpu may stand here
    return value if isinstance(value, str) else repr(value)
