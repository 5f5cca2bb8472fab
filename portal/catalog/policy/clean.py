"""From what somebody filled in to `Filled`, or every problem at once."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from portal.catalog.policy import limits
from portal.catalog.policy.kinds import checked
from portal.catalog.policy.kinds_structured import variable_fault
from portal.catalog.policy.render import render
from portal.catalog.policy.words import Bad, hint, number, short, shown
from portal.catalog.specs import Definition, Filled, Kind, Offer, Parameter, Variable
from portal.clusters.specs import WorkSpec
from portal.core.errors import Problem, Refused

_MOST_UNKNOWN = 20


def clean(definition: Definition, values: Mapping[str, Any], offer: Offer | None) -> Filled:
    """The checked values with defaults filled in. `offer` None leaves flavors unchecked (an administrator's preview).

    A key that is absent or null is missing; an empty text is a value. Raises `Refused` with every problem, each under
    "values.<parameter>"; no message ever holds a secret.
    """
    if not isinstance(values, Mapping):
        message = _("It must be an object of names and values, not {given}.")
        raise Refused(Problem("values", message.format(given=shown(values)), "type"))
    problems = _unknown(definition, values)
    found: dict[str, Any] = {}
    for parameter in definition.parameters:
        try:
            value = _value(parameter, values.get(parameter.name), offer)
        except Bad as bad:
            problems += [Problem(f"values.{parameter.name}", message, bad.code) for message in bad.messages]
        else:
            if value is not None:
                found[parameter.name] = value
    secrets = _secrets(definition, found, problems)
    public = {p.name: found[p.name] for p in definition.parameters if p.name in found and p.kind is not Kind.SECRET}
    filled = Filled(values=public, secrets=secrets)
    if not problems:
        problems += _too_large(render(definition, filled))
    if problems:
        raise Refused(problems)
    return filled


def defaults(definition: Definition) -> dict[str, Any]:
    """The values of a form that nobody has touched yet: canonical, parameters without a default left out."""
    return {p.name: p.default for p in definition.parameters if p.default is not None}


def wants_gpus(definition: Definition, values: Mapping[str, Any]) -> bool:
    """Whether these unchecked values would ask for GPUs, so that a queue can be picked before they are checked.

    A value that cannot be read counts as asking: it is then refused at its own field, and not a queue in its stead.
    """
    parameter = definition.gpu
    if parameter is None:
        return isinstance(definition.work.gpus, int) and definition.work.gpus > 0
    value = values.get(parameter.name)
    value = parameter.default if value is None else value
    if value is None:
        return False
    return not isinstance(value, Mapping) or value.get("count", 1) != 0


def _value(parameter: Parameter, raw: object, offer: Offer | None) -> Any:
    if raw is not None:
        return checked(parameter, raw, offer)
    if parameter.default is not None:
        # Again, because a default GPU flavor may be none of this queue's.
        return checked(parameter, parameter.default, offer)
    if parameter.required:
        raise Bad(_("{label} is missing. Fill it in.").format(label=parameter.label), code="required")
    return None


def _unknown(definition: Definition, values: Mapping[str, Any]) -> list[Problem]:
    names = [parameter.name for parameter in definition.parameters]
    problems = []
    for key in [str(key) for key in values if key not in names][:_MOST_UNKNOWN]:
        message = _("This template has no parameter “{name}”.").format(name=short(key))
        problems.append(Problem(f"values.{short(key)}", f"{message} {hint(key, names)}", "unknown"))
    return problems


def _secrets(definition: Definition, found: Mapping[str, Any], problems: list[Problem]) -> dict[str, str]:
    """Variable -> secret value. Notes names that cannot be, or that something else carries already."""
    taken = _variables(definition, found)
    secrets: dict[str, str] = {}
    for parameter in definition.secrets:
        if parameter.name not in found:
            continue
        variable = parameter.variable or found.get(parameter.variable_from, "")
        field = f"values.{parameter.variable_from or parameter.name}"
        if not variable:
            continue  # its name was refused already
        fault = variable_fault(variable)
        if not fault and (variable in taken or variable in secrets):
            fault = _("Another variable is called {name} already. Rename one of them.").format(name=variable)
        if fault:
            problems.append(Problem(field, fault, "env"))
        secrets[variable] = found[parameter.name]
    size = sum(len(name) + len(value.encode()) for name, value in secrets.items())
    if size > limits.SECRET_BYTES:
        message = _("All secrets together have {size} bytes; {most} is the most.")
        text = message.format(size=number(size), most=number(limits.SECRET_BYTES))
        problems.append(Problem(f"values.{definition.secrets[-1].name}", text, "too_large"))
    return secrets


def _variables(definition: Definition, found: Mapping[str, Any]) -> set[str]:
    names: set[str] = set()
    for entry in definition.work.env:
        names.update({entry.name} if isinstance(entry, Variable) else found.get(entry.name, {}))
    return names


def _too_large(work: WorkSpec) -> list[Problem]:
    """Parts that fit may still be too large together."""
    sizes = [len(argument.encode()) for argument in (*work.command, *work.args)]
    entries = [len(name.encode()) + 1 + len(value.encode()) for name, value in work.env]
    total = sum(sizes) + sum(entries)
    largest = max((*sizes, *entries), default=0)
    if largest > limits.ARGUMENT_BYTES:
        message = _(
            "One argument of the program would have {size} bytes; {most} is the most. Shorten the longest text."
        )
        return [
            Problem("values", message.format(size=number(largest), most=number(limits.ARGUMENT_BYTES)), "too_large")
        ]
    if total > limits.WORK_BYTES:
        message = _("The arguments and variables together have {size} bytes; {most} is the most. Shorten some.")
        return [Problem("values", message.format(size=number(total), most=number(limits.WORK_BYTES)), "too_large")]
    return []
