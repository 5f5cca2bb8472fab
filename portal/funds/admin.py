"""Prices in the admin: entered with a date, never edited, never deleted."""

# mypy: disable-error-code="type-arg"

from decimal import Decimal
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.widgets import AdminSplitDateTime
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from portal.clusters.models import ResourceFlavor
from portal.core.clock import now
from portal.core.errors import Problem
from portal.funds import policy, selectors, services
from portal.funds.models import Price
from portal.teams.models import User


def _models() -> list[tuple[str, str]]:
    """The GPU models that the site knows, so that no price is entered for a misspelt one."""
    known = ResourceFlavor.objects.exclude(gpu_model="").values_list("gpu_model", flat=True)
    priced = Price.objects.exclude(gpu_model="").values_list("gpu_model", flat=True)
    return [("", "—"), *((name, name) for name in sorted({*known, *priced}))]


class PriceForm(forms.ModelForm):
    gpu_model = forms.ChoiceField(
        label=_("GPU model"),
        required=False,
        choices=_models,
        help_text=_("As the ResourceFlavors name it; empty for cores and memory."),
    )
    amount = forms.CharField(label=_("Price per hour"), help_text=_("For one GPU, core or GiB. 0 is free."))
    valid_from = forms.SplitDateTimeField(
        label=_("Valid from"),
        required=False,
        widget=AdminSplitDateTime(),
        help_text=_("Empty: from now on. It ends the price before it; what was used until then keeps its price."),
    )

    class Meta:
        model = Price
        fields = ("resource", "gpu_model", "amount", "valid_from")

    def clean_amount(self) -> Decimal:
        amount = policy.read_amount(str(self.cleaned_data["amount"]))
        if isinstance(amount, Problem):
            raise forms.ValidationError(amount.message)
        return amount

    def clean(self) -> dict[str, Any]:
        super().clean()
        data: dict[str, Any] = self.cleaned_data
        if self.errors:
            return data
        moment = now()
        problems = policy.price_problems(
            selectors.prices(),
            resource=data["resource"],
            gpu_model=data["gpu_model"],
            amount=data["amount"],
            currency=settings.BEAMTIME_CURRENCY,
            valid_from=data["valid_from"] or moment,
            at=moment,
            site_currency=settings.BEAMTIME_CURRENCY,
        )
        for problem in problems:
            self.add_error(problem.field if problem.field in self.fields else None, problem.message)
        return data

    def _post_clean(self) -> None:
        """The verb makes the row; Django's own checks of a half-filled one would only repeat it."""


@admin.register(Price)
class PriceAdmin(admin.ModelAdmin):
    form = PriceForm
    list_display = ("what", "amount", "currency", "valid_from", "created_by", "created_at")
    list_filter = ("resource", "gpu_model")
    list_select_related = ("created_by",)
    date_hierarchy = "valid_from"

    @admin.display(description=_("what"), ordering="gpu_model")
    def what(self, price: Price) -> str:
        return price.gpu_model or price.get_resource_display()

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        data = form.cleaned_data
        made = services.add_price(
            actor=cast(User, request.user),
            resource=data["resource"],
            gpu_model=data["gpu_model"],
            amount=data["amount"],
            valid_from=data["valid_from"],
        )
        obj.pk = made.pk
        obj.__dict__.update({field.attname: getattr(made, field.attname) for field in Price._meta.concrete_fields})
        obj._state.adding = False
