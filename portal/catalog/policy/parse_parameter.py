"""One parameter of a definition, from its JSON."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from portal.catalog.policy import limits
from portal.catalog.policy.faults import Faults
from portal.catalog.policy.kinds import checked
from portal.catalog.policy.kinds_structured import variable_fault
from portal.catalog.policy.words import Bad, hint, short, shown
from portal.catalog.specs import Choice, Kind, Parameter

_COMMON = ("name", "kind", "label", "help", "section", "required", "default", "placeholder")
_OWN: dict[Kind, tuple[str, ...]] = {
    Kind.TEXT: ("min_length", "max_length", "pattern", "pattern_help"),
    Kind.INTEGER: ("min", "max", "unit"),
    Kind.NUMBER: ("min", "max", "unit"),
    Kind.RUNS: ("min", "max"),
    Kind.DURATION: ("min", "max"),
    Kind.MEMORY: ("min", "max"),
    Kind.GPU: ("min", "max"),
    Kind.CHOICE: ("choices",),
    Kind.IMAGE: ("choices",),
    Kind.SECRET: ("variable",),
}
_UNITS = {Kind.DURATION: "s", Kind.MEMORY: "MiB", Kind.GPU: "GPUs", Kind.RUNS: "runs"}
# The widest bounds of each kind; a definition may only narrow them.
_BOUNDS: dict[Kind, tuple[int, int]] = {
    Kind.INTEGER: (-limits.LARGEST_INTEGER, limits.LARGEST_INTEGER),
    Kind.RUNS: (1, limits.MOST_RUNS),
    Kind.DURATION: (1, limits.LONGEST_SECONDS),
    Kind.MEMORY: (limits.LEAST_MIB, limits.LARGEST_MIB),
    Kind.GPU: (0, limits.MOST_GPUS),
}
_OPTIONAL_BY_DEFAULT = (Kind.BOOLEAN, Kind.ENV, Kind.SECRET)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def parse_parameter(faults: Faults, path: str, item: object) -> Parameter | None:
    """The parameter, or None where not even name and kind can be read; notes every fault."""
    if not isinstance(item, Mapping):
        message = _("It must be an object with “name” and “kind”, not {given}.")
        faults.add(path, message.format(given=shown(item)))
        return None
    before = len(faults.problems)
    name, kind = _name(faults, path, item), _kind(faults, path, item)
    if not name or kind is None:
        return None
    faults.known_keys(path, item, _COMMON + _OWN.get(kind, ()))
    required = faults.flag(path, item, "required", kind not in _OPTIONAL_BY_DEFAULT)
    low, high = _bounds(faults, path, item, kind, required)
    shortest, longest = _lengths(faults, path, item, kind, required)
    variable, variable_from = _variable(faults, path, item) if kind is Kind.SECRET else ("", "")
    parameter = Parameter(
        name=name,
        kind=kind,
        label=faults.text(path, item, "label") or name.replace("_", " ").capitalize(),
        help=faults.text(path, item, "help"),
        section=faults.text(path, item, "section"),
        required=required,
        placeholder=faults.text(path, item, "placeholder"),
        unit=faults.text(path, item, "unit") or _UNITS.get(kind, ""),
        min=low,
        max=high,
        min_length=shortest,
        max_length=longest,
        pattern=_pattern(faults, path, item),
        pattern_help=faults.text(path, item, "pattern_help"),
        choices=_choices(faults, path, item) if kind in (Kind.CHOICE, Kind.IMAGE) else (),
        variable=variable,
        variable_from=variable_from,
    )
    # A default can only be judged by a parameter that is itself in order.
    return parameter if len(faults.problems) > before else _with_default(faults, path, item, parameter)


def _name(faults: Faults, path: str, item: Mapping[str, Any]) -> str:
    name = faults.text(path, item, "name", needed=True)
    if name and not _NAME.fullmatch(name):
        message = _("“{name}” cannot be a name. Use up to 40 small letters, digits and _, a letter first.")
        faults.add(f"{path}.name", message.format(name=short(name)))
        return ""
    return name


def _kind(faults: Faults, path: str, item: Mapping[str, Any]) -> Kind | None:
    given = item.get("kind")
    names = [str(known) for known in Kind]
    if isinstance(given, str) and given in names:
        return Kind(given)
    message = _("There is no kind {given}.").format(given=shown(given))
    faults.add(f"{path}.kind", f"{message} {hint(given if isinstance(given, str) else '', names)}")
    return None


def _bounds(
    faults: Faults, path: str, item: Mapping[str, Any], kind: Kind, required: bool
) -> tuple[int | float | None, int | float | None]:
    """`min` and `max` in the canonical unit, within what the kind allows at all."""
    least, most = _BOUNDS.get(kind, (None, None))
    if kind is Kind.GPU and required:
        least = 1
    low = _bound(faults, f"{path}.min", item.get("min"), kind, (least, most))
    high = _bound(faults, f"{path}.max", item.get("max"), kind, (least, most))
    low, high = least if low is None else low, most if high is None else high
    if low is not None and high is not None and low > high:
        message = _("The least, {low}, is above the most, {high}.")
        faults.add(f"{path}.min", message.format(low=shown(low), high=shown(high)))
    return low, high


def _bound(
    faults: Faults, path: str, given: object, kind: Kind, widest: tuple[int | None, int | None]
) -> int | float | None:
    if given is None:
        return None
    probe_kind = {Kind.GPU: Kind.INTEGER, Kind.RUNS: Kind.INTEGER}.get(kind, kind)
    low, high = (0, widest[1]) if kind is Kind.GPU else widest
    probe = Parameter(name="bound", kind=probe_kind, label="", min=low, max=high)
    try:
        value: int | float = checked(probe, given, None)
    except Bad as bad:
        faults.bad(path, bad)
        return None
    return value


def _lengths(faults: Faults, path: str, item: Mapping[str, Any], kind: Kind, required: bool) -> tuple[int, int | None]:
    if kind is Kind.SCRIPT:
        return 1, None
    if kind is not Kind.TEXT:
        return 0, None
    probe = Parameter(name="length", kind=Kind.INTEGER, label="", min=0, max=limits.SCRIPT_BYTES)
    found = {"min_length": 1 if required else 0, "max_length": limits.TEXT_LENGTH}
    for key in found:
        if key in item:
            try:
                found[key] = checked(probe, item[key], None)
            except Bad as bad:
                faults.bad(f"{path}.{key}", bad)
    if found["min_length"] > found["max_length"]:
        faults.add(f"{path}.min_length", _("The least length is above the greatest."))
    return found["min_length"], found["max_length"]


def _pattern(faults: Faults, path: str, item: Mapping[str, Any]) -> str:
    pattern = faults.text(path, item, "pattern")
    try:
        re.compile(pattern)
    except re.error as error:
        message = _("It is not a regular expression: {error}.")
        faults.add(f"{path}.pattern", message.format(error=error))
        return ""
    return pattern


def _choices(faults: Faults, path: str, item: Mapping[str, Any]) -> tuple[Choice, ...]:
    found: list[Choice] = []
    for index, given in enumerate(faults.items(path, item, "choices")):
        here = f"{path}.choices.{index}"
        if isinstance(given, Mapping):
            faults.known_keys(here, given, ("value", "label"))
            value = faults.text(here, given, "value", needed=True)
            choice = Choice(value, faults.text(here, given, "label") or value)
        elif isinstance(given, str) and given.strip() and "\0" not in given:
            choice = Choice(given, given)
        else:
            message = _("It must be a text, or an object with “value” and “label”, not {given}.")
            faults.add(here, message.format(given=shown(given)))
            continue
        if any(other.value == choice.value for other in found):
            faults.add(here, _("“{value}” is listed twice.").format(value=short(choice.value)))
        found.append(choice)
    if not found:
        faults.add(f"{path}.choices", _("List at least one choice."))
    return tuple(found)


def _variable(faults: Faults, path: str, item: Mapping[str, Any]) -> tuple[str, str]:
    """The fixed name of the environment variable, or the text parameter that gives it."""
    given = item.get("variable")
    if isinstance(given, Mapping) and list(given) == ["from"] and isinstance(given["from"], str):
        return "", given["from"]
    fault = variable_fault(given) if isinstance(given, str) else ""
    if not isinstance(given, str):
        fault = _("Name the environment variable that carries the secret, not {given}.").format(given=shown(given))
    if fault:
        faults.add(f"{path}.variable", fault)
    return str(given), ""


def _with_default(faults: Faults, path: str, item: Mapping[str, Any], parameter: Parameter) -> Parameter:
    given = item.get("default")
    if parameter.kind is Kind.SECRET and given is not None:
        faults.add(f"{path}.default", _("A secret has no default: everybody who sees the template could read it."))
        return parameter
    if given is None and parameter.kind is Kind.BOOLEAN and not parameter.required:
        given = False
    if given is None:
        return parameter
    try:
        return dataclasses.replace(parameter, default=checked(parameter, given, None))
    except Bad as bad:
        faults.bad(f"{path}.default", bad)
        return parameter
