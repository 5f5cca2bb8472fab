"""The forms of the catalog's admin pages."""

# mypy: disable-error-code="type-arg"

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.catalog.models import TemplateVersion
from portal.catalog.policy import DefinitionInvalid, parse_definition


class DefinitionField(forms.JSONField):
    """JSON as people edit it: indented, faults named by line, numbers that JSON does not have refused."""

    def prepare_value(self, value: Any) -> Any:
        # What was typed and is no JSON comes back as it was.
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)

    def to_python(self, value: Any) -> Any:
        try:
            return json.loads(value or "", parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            message = gettext("This is no JSON: line %(line)d, column %(column)d: %(fault)s.")
            raise ValidationError(
                message % {"line": error.lineno, "column": error.colno, "fault": error.msg}, code="json"
            ) from error
        except (ValueError, RecursionError) as error:
            raise ValidationError(gettext("This is no JSON: %s") % error, code="json") from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(data) != initial)
        except ValidationError:
            return True


def _no_constant(name: str) -> None:
    raise ValueError(gettext("%s is no number that JSON has.") % name)


class VersionForm(forms.ModelForm):
    definition = DefinitionField(
        widget=forms.Textarea(attrs={"rows": 40, "cols": 120, "spellcheck": "false", "class": "bt-admin-code"}),
        help_text=_("Parameters and work. “How to write it”, above, explains every key."),
    )

    class Meta:
        model = TemplateVersion
        fields = ("definition",)

    def clean_definition(self) -> Any:
        definition = self.cleaned_data["definition"]
        try:
            parse_definition(definition)
        except DefinitionInvalid as invalid:
            raise ValidationError(
                [
                    f"{problem.field}: {problem.message}" if problem.field else problem.message
                    for problem in invalid.problems
                ]
            ) from invalid
        return definition


class MessageForm(forms.Form):
    """Why a version is withdrawn."""

    message = forms.CharField(
        max_length=300,
        label=_("Message"),
        help_text=_("Shown to everybody who meets this version: why, and what to take instead."),
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )
