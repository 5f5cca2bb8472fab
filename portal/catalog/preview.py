"""A form as an administrator tries it: the fields of a definition, what was typed, and what would run.

Pure; the admin's page shows it. It goes through the same `from_form`, `clean` and `render` as a submission.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portal.catalog.policy import clean, defaults, from_form, json_schema, render, to_form
from portal.catalog.specs import Definition, Kind, Offer, Parameter, Section
from portal.core.errors import Refused


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter with what its fields show: `value` for the plain one, `flavor` and `count` for GPUs."""

    parameter: Parameter
    value: Any
    flavor: str
    count: str
    rows: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]

    @property
    def lines(self) -> int:
        """Height of a text area, 0 for a field of one line."""
        return {Kind.SCRIPT: 10, Kind.ENV: 3}.get(self.parameter.kind, 0)

    @property
    def step(self) -> str:
        """What an HTML number field may hold, "" where it is none."""
        whole = self.parameter.kind in (Kind.INTEGER, Kind.RUNS)
        return "1" if whole else "any" if self.parameter.kind is Kind.NUMBER else ""


@dataclass(frozen=True, slots=True)
class Trial:
    """The whole page. `work` is the JSON of what would run, "" while there are errors."""

    sections: tuple[tuple[Section, tuple[Field, ...]], ...]
    errors: tuple[str, ...]
    work: str
    values: str
    schema: str

    @property
    def faults(self) -> int:
        return len(self.errors) + sum(len(field.errors) for _section, fields in self.sections for field in fields)


def untouched(definition: Definition, offer: Offer) -> Trial:
    """The form as somebody opens it."""
    return _trial(definition, offer, to_form(definition, defaults(definition)))


def tried(definition: Definition, offer: Offer, data: Mapping[str, Sequence[str]]) -> Trial:
    """The form as it was sent: with its errors, or with what would run. No secret is shown again."""
    typed: dict[str, Any] = {name: list(texts) if "." in name else texts[-1] for name, texts in data.items() if texts}
    for parameter in definition.parameters:
        if parameter.kind is Kind.GPU:
            typed |= {
                key: typed[key][-1] for key in (f"{parameter.name}.flavor", f"{parameter.name}.count") if key in typed
            }
        if parameter.kind is Kind.SECRET:
            typed.pop(parameter.name, None)
    try:
        filled = clean(definition, from_form(definition, data), offer)
    except Refused as refused:
        errors: dict[str, list[str]] = {}
        for problem in refused.problems:
            errors.setdefault(problem.field, []).append(problem.message)
        return _trial(definition, offer, typed, errors)
    work = render(definition, filled).to_json()
    return dataclasses.replace(
        _trial(definition, offer, typed), work=_pretty(work), values=_pretty(dict(filled.values))
    )


def _trial(
    definition: Definition, offer: Offer, typed: Mapping[str, Any], errors: Mapping[str, list[str]] | None = None
) -> Trial:
    errors = errors or {}
    sections = tuple(
        (section, tuple(_field(parameter, typed, errors) for parameter in parameters))
        for section, parameters in definition.by_section()
    )
    known = {f"values.{parameter.name}" for parameter in definition.parameters}
    rest = tuple(message for field, messages in errors.items() if field not in known for message in messages)
    return Trial(sections, rest, work="", values="", schema=_pretty(json_schema(definition, offer)))


def _field(parameter: Parameter, typed: Mapping[str, Any], errors: Mapping[str, list[str]]) -> Field:
    name = parameter.name
    names, values = typed.get(f"{name}.name", ()), typed.get(f"{name}.value", ())
    return Field(
        parameter=parameter,
        value=typed.get(name, ""),
        flavor=typed.get(f"{name}.flavor", ""),
        count=typed.get(f"{name}.count", ""),
        rows=tuple(zip(names, values, strict=False)),
        errors=tuple(errors.get(f"values.{name}", ())),
    )


def _pretty(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)
