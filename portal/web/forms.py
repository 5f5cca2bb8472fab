"""The small forms of this door. Rules live in the verbs; a form holds what was typed and shows what they answer."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.core.errors import Refused
from portal.teams.models import Role, Scope


def show_problems(form: forms.Form, refused: Refused) -> None:
    """Put each problem at its field; one of a field that the form does not have goes above the form."""
    for problem in refused.problems:
        form.add_error(problem.field if problem.field in form.fields else None, problem.message)


class AddMemberForm(forms.Form):
    username = forms.CharField(
        label=_("User name or mail address"),
        max_length=254,
        strip=True,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.MEMBER)


class TokenForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=200,
        required=False,
        help_text=_("What will use it, such as “laptop” or “nightly sweep”."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scope = forms.ChoiceField(
        label=_("It may"),
        choices=[(Scope.READ, _("Read")), (Scope.WRITE, _("Read, submit and cancel"))],
        initial=Scope.READ,
        widget=forms.RadioSelect,
    )
    days = forms.TypedChoiceField(
        label=_("It ends after"),
        coerce=int,
        choices=[(7, _("7 days")), (30, _("30 days")), (90, _("90 days")), (365, _("365 days"))],
        initial=90,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The browser's own bubbles would speak before the sentences of the verbs do.
        self.use_required_attribute = False
