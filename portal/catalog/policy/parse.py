"""From the JSON of a definition to `Definition`. Everything wrong is named at once, by path."""

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from portal.catalog.policy.faults import Faults
from portal.catalog.policy.parse_parameter import parse_parameter
from portal.catalog.policy.parse_work import parse_work
from portal.catalog.policy.words import hint, short, shown
from portal.catalog.specs import Definition, Kind, Parameter, Section, Work

_TOP = ("parameters", "work", "sections", "queue", "forbids_gpus")
# RFC 1123, as Kubernetes wants it of a ClusterQueue's name.
_QUEUE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_MOST_PARAMETERS = 60


def parse_definition(data: object) -> Definition:
    """The definition behind the JSON. Raises `DefinitionInvalid` with every problem found."""
    faults = Faults()
    if not isinstance(data, Mapping):
        message = _("A definition is an object with “parameters” and “work”, not {given}.")
        faults.add("", message.format(given=shown(data)))
        data = {}
        faults.raise_any()
    faults.known_keys("", data, _TOP)
    sections = _sections(faults, data)
    parameters = _parameters(faults, data, sections)
    forbids_gpus = faults.flag("", data, "forbids_gpus", False)
    queue = faults.text("", data, "queue") or "gpu"
    if not _QUEUE.fullmatch(queue):
        message = _("“{name}” cannot be the name of a ClusterQueue. Use small letters, digits and dashes.")
        faults.add("queue", message.format(name=short(queue)))
    work, used = parse_work(faults, data.get("work"), parameters)
    if not faults.problems:
        # Only now, because a fault in the one part would be repeated as a fault of the other.
        _together(faults, parameters, work, used, forbids_gpus)
    faults.raise_any()
    return Definition(parameters=parameters, work=work, sections=sections, queue=queue, forbids_gpus=forbids_gpus)


def _sections(faults: Faults, data: Mapping[str, Any]) -> tuple[Section, ...]:
    found: list[Section] = []
    for index, item in enumerate(faults.items("", data, "sections")):
        path = f"sections.{index}"
        if not isinstance(item, Mapping):
            message = _("It must be an object with “title” and “help”, not {given}.")
            faults.add(path, message.format(given=shown(item)))
            continue
        faults.known_keys(path, item, ("title", "help"))
        section = Section(faults.text(path, item, "title", needed=True), faults.text(path, item, "help"))
        if any(other.title == section.title for other in found):
            faults.add(f"{path}.title", _("There is another section of this title."))
        found.append(section)
    return tuple(found)


def _parameters(faults: Faults, data: Mapping[str, Any], sections: tuple[Section, ...]) -> tuple[Parameter, ...]:
    items = faults.items("", data, "parameters")
    if len(items) > _MOST_PARAMETERS:
        message = _("There are {count} parameters; {most} is the most.")
        faults.add("parameters", message.format(count=len(items), most=_MOST_PARAMETERS))
    titles = [section.title for section in sections]
    found: list[Parameter] = []
    for index, item in enumerate(items[:_MOST_PARAMETERS]):
        path = f"parameters.{index}"
        parameter = parse_parameter(faults, path, item)
        if parameter is None:
            continue
        if any(other.name == parameter.name for other in found):
            message = _("The name “{name}” is taken by another parameter.")
            faults.add(f"{path}.name", message.format(name=parameter.name))
        if parameter.section and parameter.section not in titles:
            message = _("There is no section “{title}” in “sections”.").format(title=short(parameter.section))
            faults.add(f"{path}.section", f"{message} {hint(parameter.section, titles)}")
        found.append(parameter)
    return tuple(found)


def _together(
    faults: Faults, parameters: tuple[Parameter, ...], work: Work, used: frozenset[str], forbids_gpus: bool
) -> None:
    """What can only be seen with the whole in view."""
    by_name = {parameter.name: parameter for parameter in parameters}
    gpus = [parameter for parameter in parameters if parameter.kind is Kind.GPU]
    if forbids_gpus and (gpus or work.gpus):
        faults.add("forbids_gpus", _("The template forbids GPUs, yet its parameters or its work ask for some."))
    if len(gpus) > 1:
        faults.add("parameters", _("Only one parameter may be of the kind “gpu”."))
    variables: set[str] = set()
    reached = set(used)
    for index, parameter in enumerate(parameters):
        path = f"parameters.{index}.variable"
        if parameter.variable_from:
            reached.add(parameter.variable_from)
            source = by_name.get(parameter.variable_from)
            if source is None or source.kind is not Kind.TEXT or source.may_be_missing:
                message = _("“{name}” must be a text parameter that is required or has a default.")
                faults.add(path, message.format(name=short(parameter.variable_from)))
        elif parameter.variable:
            if parameter.variable in variables:
                faults.add(path, _("Another secret travels in {name}.").format(name=parameter.variable))
            variables.add(parameter.variable)
    for index, parameter in enumerate(parameters):
        if parameter.name not in reached and parameter.kind is not Kind.SECRET:
            message = _("Nothing in “work” uses “{name}”. Use it there or remove it.")
            faults.add(f"parameters.{index}", message.format(name=parameter.name), "unused")
