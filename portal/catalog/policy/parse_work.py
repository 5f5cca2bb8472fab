"""The work of a definition, from its JSON: a tree of plain values, {"from"}, {"join"} and {"if"}, no text templates."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from portal.catalog.policy import limits
from portal.catalog.policy.faults import Faults
from portal.catalog.policy.kinds import checked
from portal.catalog.policy.kinds_structured import variable_fault
from portal.catalog.policy.words import Bad, hint, short, shown, utf8_size
from portal.catalog.specs import From, If, Item, Join, Kind, Node, Parameter, Variable, Work

_KEYS = ("image", "command", "args", "env", "cpu", "memory", "gpus", "runs", "parallelism", "time_limit")
# Kinds whose value has one text; the others travel by ways of their own.
_TEXTUAL = frozenset(Kind) - {Kind.ENV, Kind.SECRET}
_IMAGES = frozenset({Kind.IMAGE, Kind.CHOICE, Kind.TEXT})
# Of each resource: the kinds that may give it, and how a literal is read (kind, least, most).
_RESOURCES: dict[str, tuple[frozenset[Kind], Kind, float, float]] = {
    "cpu": (frozenset({Kind.INTEGER, Kind.NUMBER}), Kind.NUMBER, 0.001, limits.MOST_CORES),
    "memory": (frozenset({Kind.MEMORY}), Kind.MEMORY, limits.LEAST_MIB, limits.LARGEST_MIB),
    "gpus": (frozenset({Kind.GPU}), Kind.INTEGER, 0, limits.MOST_GPUS),
    "runs": (frozenset({Kind.RUNS}), Kind.INTEGER, 1, limits.MOST_RUNS),
    "parallelism": (frozenset({Kind.INTEGER, Kind.RUNS}), Kind.INTEGER, 1, limits.MOST_RUNS),
    "time_limit": (frozenset({Kind.DURATION}), Kind.DURATION, 1, limits.LONGEST_SECONDS),
}
_DEEPEST = 8


def parse_work(faults: Faults, data: object, parameters: tuple[Parameter, ...]) -> tuple[Work, frozenset[str]]:
    """The work, and the names of the parameters it uses; notes every fault under "work."."""
    reader = _Reader(faults, parameters)
    if not isinstance(data, Mapping):
        faults.add("work", _("It must be an object with “image” and “command”, not {given}.").format(given=shown(data)))
        return Work(image="", command=()), frozenset()
    faults.known_keys("work", data, _KEYS)
    command = reader.sequence("work.command", data.get("command"))
    if not command:
        faults.add("work.command", _("Name the program that runs, such as [“python3”, “train.py”]."))
    found = {key: reader.resource(key, data.get(key)) for key in _RESOURCES}
    work = Work(
        image=reader.image(data.get("image")),
        command=command,
        args=reader.sequence("work.args", data.get("args", [])),
        env=reader.environment(data.get("env", [])),
        cpu=found["cpu"] or 1,
        memory=found["memory"] or 1024,
        gpus=found["gpus"] or 0,
        runs=found["runs"] or 1,
        parallelism=found["parallelism"],
        time_limit=found["time_limit"],
    )
    return work, frozenset(reader.used)


class _Reader:
    """Reads nodes; knows the parameters and which of them were used."""

    def __init__(self, faults: Faults, parameters: tuple[Parameter, ...]) -> None:
        self.faults = faults
        self.parameters = {parameter.name: parameter for parameter in parameters}
        self.used: set[str] = set()

    def image(self, data: object) -> Node:
        if data is None:
            self.faults.add("work.image", _("Name the image, or take it from a parameter: {“from”: “image”}."))
            return ""
        return self.node("work.image", data, _IMAGES)

    def sequence(
        self, path: str, data: object, given: frozenset[str] = frozenset(), depth: int = 0
    ) -> tuple[Item, ...]:
        """A list of arguments. `given` names the parameters that surely have a value here."""
        if not isinstance(data, list):
            self.faults.add(path, _("It must be a list, not {given}.").format(given=shown(data)))
            return ()
        items: list[Item] = []
        for index, item in enumerate(data):
            here = f"{path}.{index}"
            if isinstance(item, Mapping) and "if" in item:
                items.append(self._if(here, item, given, depth))
            else:
                items.append(self.node(here, item, _TEXTUAL, given, depth))
        return tuple(items)

    def _if(self, path: str, data: Mapping[str, Any], given: frozenset[str], depth: int) -> If:
        self.faults.known_keys(path, data, ("if", "then", "else"))
        name = self._name(f"{path}.if", data["if"], frozenset(Kind) - {Kind.SECRET})
        if depth >= _DEEPEST:
            self.faults.add(path, _("It is nested too deeply; {most} levels are the most.").format(most=_DEEPEST))
            return If(name, ())
        then = self.sequence(f"{path}.then", data.get("then"), given | {name}, depth + 1)
        otherwise = self.sequence(f"{path}.else", data.get("else", []), given, depth + 1)
        return If(name, then, otherwise)

    def node(
        self,
        path: str,
        data: object,
        kinds: frozenset[Kind],
        given: frozenset[str] | None = frozenset(),
        depth: int = 0,
    ) -> Node:
        """One value that ends as a text. `given` None: a missing value is fine here."""
        if isinstance(data, str):
            try:
                if utf8_size(data) <= limits.SCRIPT_BYTES:
                    return data
                self.faults.add(path, _("It has more than {most} bytes.").format(most=f"{limits.SCRIPT_BYTES:,}"))
            except Bad as bad:
                self.faults.bad(path, bad)
            return ""
        if isinstance(data, Mapping) and list(data) == ["from"]:
            return self._from(path, data["from"], kinds, given)
        if isinstance(data, Mapping) and list(data) == ["lines"]:
            # A program written into the definition reads better as lines than as one string full of \\n.
            lines = data["lines"]
            if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
                return self.node(path, "\n".join([*lines, ""]), kinds)
            self.faults.add(f"{path}.lines", _("It must be a list of texts."))
            return ""
        if isinstance(data, Mapping) and list(data) == ["join"] and isinstance(data["join"], list):
            if depth >= _DEEPEST:
                self.faults.add(path, _("It is nested too deeply; {most} levels are the most.").format(most=_DEEPEST))
                return ""
            parts = enumerate(data["join"])
            return Join(tuple(self.node(f"{path}.join.{i}", part, _TEXTUAL, given, depth + 1) for i, part in parts))
        message = _("It must be a text, {{“from”: …}}, {{“join”: […]}} or {{“lines”: […]}}, not {given}.")
        self.faults.add(path, message.format(given=shown(data)))
        return ""

    def _from(self, path: str, name: object, kinds: frozenset[Kind], given: frozenset[str] | None) -> From:
        found = From(self._name(f"{path}.from", name, kinds))
        parameter = self.parameters.get(found.name)
        if parameter is None or parameter.kind not in kinds or given is None:
            return found
        if parameter.may_be_missing and found.name not in given:
            message = _(
                "“{name}” may be left empty. Give it a default, or put this inside {{“if”: “{name}”, “then”: […]}}."
            )
            self.faults.add(f"{path}.from", message.format(name=found.name))
        return found

    def _name(self, path: str, name: object, kinds: frozenset[Kind]) -> str:
        known = list(self.parameters)
        if not isinstance(name, str) or name not in self.parameters:
            text = name if isinstance(name, str) else ""
            message = _("There is no parameter {given}.").format(given=shown(name))
            self.faults.add(path, f"{message} {hint(text, known)}", "unknown")
            return text
        self.used.add(name)
        kind = self.parameters[name].kind
        if kind is Kind.SECRET:
            self.faults.add(path, _("“{name}” is a secret; it travels only as its variable.").format(name=name))
        elif kind not in kinds:
            names = ", ".join(sorted(kinds))
            message = _("“{name}” is of the kind {kind}; what may stand here is: {kinds}.")
            self.faults.add(path, message.format(name=name, kind=kind, kinds=names))
        return name

    def environment(self, data: object) -> tuple[Variable | From, ...]:
        """[{"name": N, "value": node} | {"from": env parameter}]."""
        if not isinstance(data, list):
            self.faults.add("work.env", _("It must be a list, not {given}.").format(given=shown(data)))
            return ()
        found: list[Variable | From] = []
        for index, item in enumerate(data):
            path = f"work.env.{index}"
            if isinstance(item, Mapping) and list(item) == ["from"]:
                found.append(From(self._name(f"{path}.from", item["from"], frozenset({Kind.ENV}))))
            elif isinstance(item, Mapping) and {*item} == {"name", "value"} and isinstance(item["name"], str):
                fault = variable_fault(item["name"])
                if fault:
                    self.faults.add(f"{path}.name", fault)
                found.append(Variable(item["name"], self.node(f"{path}.value", item["value"], _TEXTUAL, None)))
            else:
                message = _("It must be {{“name”: …, “value”: …}} or {{“from”: parameter}}, not {given}.")
                self.faults.add(path, message.format(given=short(str(item)) if item else shown(item)))
        return tuple(found)

    def resource(self, key: str, data: object) -> Node | None:
        """One of the numbers that a job asks for: a literal, or a parameter of a fitting kind; None if absent."""
        path = f"work.{key}"
        kinds, kind, least, most = _RESOURCES[key]
        if data is None:
            return None
        if isinstance(data, Mapping) and list(data) == ["from"]:
            name = self._name(f"{path}.from", data["from"], kinds)
            parameter = self.parameters.get(name)
            if parameter is not None and kind is not Kind.DURATION and key != "gpus":
                self._bounded(path, parameter, least, most)
            return From(name)
        try:
            value: int | float = checked(Parameter(name=key, kind=kind, label=key, min=least, max=most), data, None)
        except Bad as bad:
            self.faults.bad(path, bad)
            return None
        return value

    def _bounded(self, path: str, parameter: Parameter, least: float, most: float) -> None:
        if parameter.min is None or parameter.max is None or parameter.min < least or parameter.max > most:
            message = _("“{name}” needs “min” and “max” from {least} to {most} to be used here.")
            text = message.format(name=parameter.name, least=shown(least), most=shown(most))
            self.faults.add(f"{path}.from", text)
