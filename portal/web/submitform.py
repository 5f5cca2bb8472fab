"""The submit form, made from a template's definition. It holds what was typed and shows what the verbs refuse.

It checks nothing itself: one definition gives the form, its validation and the API's schema, and `catalog.policy` is
where it is read. Field names are those of `catalog.policy.from_form`; the job's own fields begin with "job.".
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _

from portal.catalog.policy import defaults, from_form, to_form
from portal.catalog.specs import Definition, Kind, Parameter
from portal.core.errors import Problem, Refused
from portal.quotas.policy import ModelRoom
from portal.web.submitfields import GpuField, flavor_options, name_field, parameter_field, queue_field

NAME, QUEUE, KEY, VERSION, FROM = "job.name", "job.queue", "job.key", "job.version", "job.from"
_OWN_FIELDS = {"name": NAME, "queue": QUEUE}
_HALF = frozenset({Kind.INTEGER, Kind.NUMBER, Kind.RUNS, Kind.DURATION, Kind.MEMORY, Kind.CHOICE, Kind.TEXT})


def new_key() -> str:
    """An idempotency key: one form, one job, however often it is sent."""
    return uuid4().hex


@dataclass(frozen=True, slots=True)
class Part:
    """A field in its section. `kind` picks the markup; `field` is a bound field or a `GpuField`."""

    kind: str
    field: Any
    half: bool = False
    mono: bool = False
    prose: bool = False


@dataclass(frozen=True, slots=True)
class FormSection:
    title: str
    help: str
    parts: Sequence[Part]


class _Widgets(forms.Form):
    """The bound fields behind the form; only for their rendering."""

    use_required_attribute = False
    error_css_class = ""

    def __init__(self, fields: Mapping[str, forms.Field], data: QueryDict | None, initial: Mapping[str, Any]) -> None:
        super().__init__(data, initial=dict(initial), auto_id="f-%s")
        self.fields.update(fields)


@dataclass(frozen=True, slots=True)
class Around:
    """What a form shows beside its definition: the team's queues, and each GPU model's room and price per hour."""

    queues: Sequence[str]
    rooms: Sequence[ModelRoom]
    prices: Mapping[str, Decimal | None]


@dataclass(slots=True)
class SubmitForm:
    """A definition's form for one team: unbound from defaults or a cloned job, or bound to what was sent.

    `around` is asked when the form is shown; a form that was sent and taken is not.
    """

    definition: Definition
    title: str
    around: Callable[[], Around]
    data: QueryDict | None = None
    values: Mapping[str, Any] | None = None
    name: str = ""
    queue: str = ""
    key: str = field(default_factory=new_key)
    problems: list[Problem] = field(default_factory=list)
    _widgets: _Widgets | None = None

    # --- what was sent -------------------------------------------------------------------------------------------

    def sent_values(self) -> dict[str, Any]:
        """JSON values for the verbs, secrets among them."""
        return from_form(self.definition, dict(self.data.lists())) if self.data is not None else {}

    def sent_name(self) -> str:
        return self.data.get(NAME, "").strip() if self.data is not None else self.name

    def sent_queue(self) -> str | None:
        return (self.data.get(QUEUE, "") or None) if self.data is not None else None

    def shown_values(self) -> Mapping[str, Any]:
        """The values that an unsent form stands for: the cloned job's over the defaults."""
        known = {p.name for p in self.definition.parameters}
        cloned = {name: value for name, value in (self.values or {}).items() if name in known}
        return {**defaults(self.definition), **cloned}

    # --- what goes wrong -----------------------------------------------------------------------------------------

    def refuse(self, refused: Refused) -> None:
        """Show these problems, each at its field; those of no field stand above the form."""
        self.problems = list(refused.problems)
        widgets = self._form()
        for problem in self.problems:
            name = self.field_of(problem)
            if name in widgets.fields:
                widgets.add_error(name, problem.message)

    def field_of(self, problem: Problem) -> str:
        """The form's field that a problem belongs to, "" if to none."""
        head, _dot, rest = problem.field.partition(".")
        if head == "values":
            name = rest.partition(".")[0]
            return name if self.definition.parameter(name) else ""
        return _OWN_FIELDS.get(head, "")

    @property
    def above(self) -> list[str]:
        """Messages that belong to no field."""
        return [problem.message for problem in self.problems if not self.field_of(problem)]

    @property
    def first_wrong(self) -> str:
        """The id of the first field, in the order of the form, that needs a change; "" if none does."""
        wrong = {self.field_of(problem) for problem in self.problems}
        names = [NAME, *(p.name for p in self._ordered()), QUEUE]
        first = next((name for name in names if name in wrong), "")
        parameter = self.definition.parameter(first)
        if parameter is not None and parameter.kind is Kind.GPU:
            return f"f-{first}.count"
        return f"f-{first}" if first else ""

    def label_of(self, problem: Problem) -> str:
        """The words beside the field that a problem belongs to, "" if to none."""
        widgets, name = self._form(), self.field_of(problem)
        return str(widgets.fields[name].label or "") if name in widgets.fields else ""

    @property
    def wrong_count(self) -> int:
        return len({self.field_of(problem) for problem in self.problems} - {""})

    # --- what is shown -------------------------------------------------------------------------------------------

    @property
    def sections(self) -> list[FormSection]:
        """The sections in the order of thought: name, the definition's own, and the queue where there is a choice."""
        widgets = self._form()
        name = Part("field", widgets[NAME])
        found = [FormSection(_("Job"), _("How you will find it again."), [name])]
        for section, parameters in self.definition.by_section():
            parts = [self._part(widgets, parameter) for parameter in parameters]
            found.append(FormSection(section.title or _("Settings"), section.help, parts))
        if QUEUE in widgets.fields:
            text = _("Where it waits for its turn.")
            found.append(FormSection(_("Queue"), text, [Part("field", widgets[QUEUE], half=True)]))
        return found

    @property
    def has_secrets(self) -> bool:
        return bool(self.definition.secrets)

    def _ordered(self) -> Iterable[Parameter]:
        for _section, parameters in self.definition.by_section():
            yield from parameters

    def _part(self, widgets: _Widgets, parameter: Parameter) -> Part:
        if parameter.kind is Kind.GPU:
            return Part("gpu", self._gpu(parameter))
        mono = parameter.kind in (Kind.SCRIPT, Kind.ENV, Kind.SECRET)
        return Part("field", widgets[parameter.name], half=parameter.kind in _HALF, mono=mono)

    def _gpu(self, parameter: Parameter) -> GpuField:
        shown = self._shown()
        flavor, count = shown.get(f"{parameter.name}.flavor", ""), shown.get(f"{parameter.name}.count", "")
        messages = [p.message for p in self.problems if self.field_of(p) == parameter.name]
        around = self.around()
        options = flavor_options(around.rooms, around.prices, str(flavor))
        return GpuField(parameter, options, str(count), messages, f"f-{parameter.name}")

    def _shown(self) -> Mapping[str, Any]:
        """By field name: what was sent, else the cloned job's values over the defaults."""
        if self.data is not None:
            return self.data
        shown = _show(self.definition, defaults(self.definition))
        return {**shown, **_show(self.definition, self.values or {})}

    def _form(self) -> _Widgets:
        if self._widgets is None:
            shown = {NAME: self.name, QUEUE: self.queue, **({} if self.data is not None else self._shown())}
            fields: dict[str, forms.Field] = {NAME: name_field(self.title)}
            fields |= {
                p.name: parameter_field(p, shown.get(p.name)) for p in self.definition.parameters if p.kind != Kind.GPU
            }
            queues = self.around().queues
            if len(queues) > 1:
                fields[QUEUE] = queue_field(self.definition, queues)
            self._widgets = _Widgets(fields, self.data, shown)
            # Bound fields show errors only once the form was cleaned, which checks nothing (submitfields.Shown).
            self._widgets.full_clean()
        return self._widgets


def _show(definition: Definition, values: Mapping[str, Any]) -> dict[str, Any]:
    """`to_form`, one parameter at a time: a value of an older version that no longer fits its kind is left out."""
    shown: dict[str, Any] = {}
    for parameter in definition.parameters:
        if parameter.name in values:
            try:
                shown |= to_form(definition, {parameter.name: values[parameter.name]})
            except (TypeError, ValueError, KeyError, AttributeError):
                continue
    return shown
