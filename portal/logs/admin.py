"""How long teams keep their logs. Every change goes through a verb, so that it is audited."""

# mypy: disable-error-code="type-arg"

from typing import Any, cast

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from portal.logs import services
from portal.logs.models import Retention
from portal.teams.models import User


@admin.register(Retention)
class RetentionAdmin(admin.ModelAdmin):
    list_display = ("team", "days")
    list_select_related = ("team",)
    autocomplete_fields = ("team",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("team",) if obj else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        services.set_retention(actor=cast(User, request.user), team=obj.team, days=obj.days)
        obj.pk = Retention.objects.get(team=obj.team).pk

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        services.set_retention(actor=cast(User, request.user), team=obj.team, days=None)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Retention]) -> None:
        for row in queryset:
            self.delete_model(request, row)
