"""The checkers of the two kinds whose values have parts: GPUs and environment variables."""

import math
from collections.abc import Mapping

from django.utils.translation import gettext as _

from portal.catalog.policy import limits
from portal.catalog.policy.words import Bad, is_variable_name, listed, number, short, shown, utf8_size
from portal.catalog.specs import FlavorChoice, Offer, Parameter

_MOST_FAULTS = 20
_GPU_SHAPE = '{"flavor": "", "count": 1}'


def gpu_value(parameter: Parameter, raw: object, offer: Offer | None) -> dict[str, object]:
    """{"flavor": name or "" for any, "count": n}. `offer` None leaves flavors unchecked. Raises `Bad`."""
    if not isinstance(raw, Mapping):
        message = _("It must be a flavor and a count, such as {shape}, not {given}.")
        raise Bad(message.format(shape=_GPU_SHAPE, given=shown(raw)), code="type")
    unknown = [str(key) for key in raw if key not in ("flavor", "count")]
    if unknown:
        message = _("It knows “flavor” and “count”, not {names}.")
        raise Bad(message.format(names=listed(f"“{short(name)}”" for name in unknown)), code="unknown")
    flavor, count = raw.get("flavor", ""), raw.get("count", "")
    if not isinstance(flavor, str):
        message = _("The flavor must be a name, or “” for any, not {given}.")
        raise Bad(message.format(given=shown(flavor)), code="type")
    utf8_size(flavor)
    count = _count(parameter, count)
    if count and offer is not None:
        _offered(flavor, count, offer)
    return {"flavor": flavor if count else "", "count": count}


def _count(parameter: Parameter, raw: object) -> int:
    if isinstance(raw, float) and math.isfinite(raw) and raw.is_integer():
        raw = int(raw)
    if raw == "":
        raise Bad(_("Say how many GPUs."), code="required")
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise Bad(_("The number of GPUs must be a whole number, not {given}.").format(given=shown(raw)), code="type")
    low, high = int(parameter.min or 0), int(parameter.max if parameter.max is not None else limits.MOST_GPUS)
    if not low <= raw <= high:
        message = _("It asks {given} GPUs; it must be from {low} to {high}.")
        raise Bad(message.format(given=shown(raw), low=low, high=high), code="range")
    return raw


def _offered(flavor: str, count: int, offer: Offer) -> None:
    if not offer.flavors:
        raise Bad(_("This queue has no GPUs. Take a queue that has, or ask for 0."), code="choice")
    names = [choice.name for choice in offer.flavors]
    if flavor and flavor not in names:
        message = _("This queue does not have the flavor “{flavor}”. It has {flavors}.")
        words = listed(_words(choice) for choice in offer.flavors)
        raise Bad(message.format(flavor=short(flavor), flavors=words), code="choice")
    most = max(choice.most for choice in offer.flavors if not flavor or choice.name == flavor)
    if count > most:
        message = _("It asks {count} GPUs; this queue can give {most} at most. Take {most} or fewer.")
        raise Bad(message.format(count=number(count), most=number(most)), code="never_fits")


def _words(choice: FlavorChoice) -> str:
    return choice.name if choice.label == choice.name else f"{choice.name} ({choice.label})"


def env_value(_parameter: Parameter, raw: object, _offer: Offer | None) -> dict[str, str]:
    """NAME -> value, byte for byte. A text of NAME=value lines is taken as well. Raises `Bad` with every fault."""
    faults: list[str] = []
    pairs = _pairs(raw, faults)
    found: dict[str, str] = {}
    size = 0
    for name, value in pairs:
        fault = variable_fault(name)
        if not fault and name in found:
            fault = _("{name} is given twice. Keep one of them.").format(name=name)
        if not fault and not isinstance(value, str):
            fault = _("The value of {name} must be a text, not {given}. Put it in quotes.").format(
                name=name, given=shown(value)
            )
        if fault:
            faults.append(fault)
            continue
        try:
            size += len(name) + utf8_size(str(value))
        except Bad as bad:
            faults.append(f"{name}: {bad.messages[0]}")
        found[name] = str(value)
    if faults:
        raise Bad(*faults[:_MOST_FAULTS], code="env")
    if size > limits.ENV_BYTES:
        message = _("All names and values together have {size} bytes; {most} is the most.")
        raise Bad(message.format(size=number(size), most=number(limits.ENV_BYTES)), code="too_large")
    return found


def _pairs(raw: object, faults: list[str]) -> list[tuple[str, object]]:
    """Names and values from an object, from NAME=value lines, or from a list of lines and [name, value] (a form)."""
    if isinstance(raw, Mapping):
        return [(str(name), value) for name, value in raw.items()]
    if not isinstance(raw, str | list):
        message = _('It must be an object of names and values, such as {{"SEED": "1"}}, not {given}.')
        raise Bad(message.format(given=shown(raw)), code="type")
    pairs: list[tuple[str, object]] = []
    for position, item in enumerate(raw.split("\n") if isinstance(raw, str) else raw, start=1):
        match item:
            case str() if not item.strip():
                continue
            case str() if "=" in item:
                name, _equals, value = item.partition("=")
                pairs.append((name.strip(), value))
            case str():
                message = _("Line {number} has no “=”: {line}. Write NAME=value.")
                faults.append(message.format(number=position, line=shown(item)))
            case [str() as name, value]:
                pairs.append((name, value))
            case _other:
                faults.append(_("Entry {number} must be a name and a value.").format(number=position))
    return pairs


def variable_fault(name: str) -> str:
    """Why this cannot be the name of an environment variable, or ""."""
    if not is_variable_name(name):
        message = _("“{name}” cannot be the name of a variable. Use letters, digits and _, no digit first.")
        return message.format(name=short(name))
    if name in limits.RESERVED_VARIABLES:
        message = _("{name} is set by Beamtime to what the job was given. Remove it.")
        return message.format(name=name)
    if len(name) > 200:
        return _("The name “{name}” has {length} characters; 200 is the most.").format(
            name=short(name), length=len(name)
        )
    return ""


__all__ = ["env_value", "gpu_value", "variable_fault"]
