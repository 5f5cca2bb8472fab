"""What the fields of the submit form look like: one widget per kind of parameter, and the GPU picker's rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.html import escape
from django.utils.translation import gettext as _

from portal.catalog.policy import format_duration, format_memory
from portal.catalog.specs import Definition, Kind, Parameter
from portal.quotas.policy import ModelRoom

_NUMERIC = {Kind.INTEGER: "numeric", Kind.RUNS: "numeric", Kind.NUMBER: "decimal"}


@dataclass(frozen=True, slots=True)
class FlavorOption:
    """One row of the GPU picker. `queues` are the ClusterQueues that have it, for the dependent choice of the queue."""

    value: str
    label: str
    memory_gib: int | None
    room: ModelRoom | None
    price: Decimal | None
    queues: Sequence[str]
    chosen: bool

    @property
    def queues_json(self) -> str:
        return json.dumps(list(self.queues))


@dataclass(slots=True)
class GpuField:
    """The GPU picker of a form: radio rows and a count."""

    parameter: Parameter
    options: Sequence[FlavorOption]
    count: str
    errors: Sequence[str] = ()
    auto_id: str = ""

    @property
    def label(self) -> str:
        return self.parameter.label

    @property
    def help_text(self) -> str:
        return self.parameter.help

    @property
    def titled_by_section(self) -> bool:
        """The section says it already; the legend is then for the ear only."""
        return self.parameter.section == self.parameter.label

    @property
    def least(self) -> int:
        return int(self.parameter.min or 0)

    @property
    def most(self) -> int | None:
        return None if self.parameter.max is None else int(self.parameter.max)


class Shown(forms.Field):
    """Shows and holds; never checks. The widget may offer choices, and whatever comes is passed on."""

    def clean(self, value: Any) -> Any:
        return value


def flavor_options(rooms: Sequence[ModelRoom], prices: Mapping[str, Decimal | None], chosen: str) -> list[FlavorOption]:
    """The rows of the GPU picker: each flavor of the team's queues, and any of them where there is a choice."""
    options = [
        FlavorOption(
            value=room.flavor.name,
            label=room.label,
            memory_gib=room.flavor.memory_beside,
            room=room,
            price=prices.get(room.flavor.gpu_model),
            queues=room.queues,
            chosen=room.flavor.name == chosen or (len(rooms) == 1 and not chosen),
        )
        for room in rooms
    ]
    if len(rooms) > 1:
        queues = sorted({queue for room in rooms for queue in room.queues})
        options.insert(0, FlavorOption("", _("Any model"), None, None, None, queues, chosen == ""))
    elif chosen and not any(option.chosen for option in options) and options:
        # What a cloned job had is no longer there; the verb would refuse it with a sentence, so it is not hidden.
        options.append(FlavorOption(chosen, chosen, None, None, None, (), True))
    return options


def name_field(title: str) -> forms.Field:
    widget = forms.TextInput(attrs={"placeholder": title, "autocomplete": "off", "dir": "auto"})
    found = Shown(label=_("Name"), required=False, widget=widget)
    # Templates write help with |safe, because Django's own helps hold markup; these texts are text.
    found.help_text = escape(_("Left empty, it is called “%(title)s”.") % {"title": title})
    return found


def queue_field(definition: Definition, queues: Sequence[str]) -> forms.Field:
    first = _("Chosen for you: %(queue)s where it suits") % {"queue": definition.queue}
    choices = [("", first), *((name, name) for name in queues)]
    return Shown(label=_("ClusterQueue"), required=True, widget=forms.Select(choices=choices))


def parameter_field(parameter: Parameter, shown: Any) -> forms.Field:
    """A bound field's rules of display for one parameter."""
    found = Shown(label=parameter.label, required=_is_required(parameter), widget=_widget(parameter, shown))
    found.help_text = escape(_help(parameter))
    return found


def _is_required(parameter: Parameter) -> bool:
    return parameter.required or parameter.kind is Kind.BOOLEAN


def _widget(parameter: Parameter, shown: Any) -> forms.Widget:
    attrs = {"autocomplete": "off", "spellcheck": "false"}
    if parameter.placeholder:
        attrs["placeholder"] = parameter.placeholder
    match parameter.kind:
        case Kind.SCRIPT:
            return forms.Textarea(attrs={**attrs, "rows": "10", "wrap": "off"})
        case Kind.ENV:
            attrs.setdefault("placeholder", "NAME=value")
            return forms.Textarea(attrs={**attrs, "rows": "3", "wrap": "off"})
        case Kind.BOOLEAN:
            return forms.CheckboxInput()
        case Kind.CHOICE | Kind.IMAGE:
            return forms.Select(choices=_choices(parameter))
        case Kind.SECRET:
            return forms.PasswordInput(attrs={**attrs, "autocomplete": "new-password"}, render_value=False)
        case Kind.TEXT if isinstance(shown, str) and "\n" in shown:
            return forms.Textarea(attrs={**attrs, "rows": "3"})
    if parameter.kind in _NUMERIC:
        attrs["inputmode"] = _NUMERIC[parameter.kind]
    return forms.TextInput(attrs=attrs)


def _choices(parameter: Parameter) -> list[tuple[str, str]]:
    empty = [] if parameter.required and parameter.default is not None else [("", _("Choose one"))]
    if not parameter.required:
        empty = [("", _("None"))]
    return [*empty, *((choice.value, choice.label) for choice in parameter.choices)]


def _help(parameter: Parameter) -> str:
    """The template's own help, or else how to write it; then between which bounds."""
    words = [parameter.help or _form_of(parameter), _bounds(parameter)]
    return " ".join(word for word in words if word)


def _form_of(parameter: Parameter) -> str:
    match parameter.kind:
        case Kind.DURATION:
            return _("Such as 30 min, 2 h or 1 d 12 h.")
        case Kind.MEMORY:
            return _("Such as 512 MiB or 16 GiB.")
        case Kind.ENV:
            return _("NAME=value, one a line; everything after the first = is kept as typed.")
        case Kind.SECRET:
            return _("Can be used, never shown; typed anew for each job.")
    return parameter.pattern_help


def _bounds(parameter: Parameter) -> str:
    low, high = (_bound(parameter, bound) for bound in (parameter.min, parameter.max))
    # Durations and memory carry their units in the words; a number has its unit behind the second.
    unit = "" if parameter.kind in (Kind.DURATION, Kind.MEMORY) else parameter.unit
    words = {"low": low, "high": f"{high} {unit}".strip()}
    if low and high:
        return _("%(low)s to %(high)s.") % words
    if low:
        return _("At least %(low)s.") % {"low": f"{low} {unit}".strip()}
    return _("At most %(high)s.") % words if high else ""


def _bound(parameter: Parameter, bound: float | None) -> str:
    if bound is None:
        return ""
    match parameter.kind:
        case Kind.DURATION:
            return format_duration(int(bound))
        case Kind.MEMORY:
            return format_memory(int(bound))
        case Kind.INTEGER | Kind.NUMBER | Kind.RUNS:
            # The widest bounds of a kind say nothing; nobody types 2**53.
            return "" if abs(bound) >= 2**53 - 1 else f"{Decimal(str(bound)):,f}"
    return ""
