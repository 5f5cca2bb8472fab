"""Queues in the admin. Those of this machine are edited here; those of Kubernetes are Kueue's and only shown.

Which teams may use a queue is Beamtime's own and can be changed for both.
"""

# mypy: disable-error-code="type-arg"

from typing import Any, cast

from django.contrib import admin, messages
from django.core.validators import MinValueValidator
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from portal.clusters.models import BackendKind, Cluster, ResourceFlavor
from portal.core.errors import BeamtimeError
from portal.quotas import services
from portal.quotas.models import ClusterQueue, FlavorQuota, LocalQueue
from portal.teams.models import User

_KUEUES_OWN = ("cluster", "name", "cohort", "stopped")


def _is_mirrored(queue: ClusterQueue | None) -> bool:
    return queue is not None and queue.cluster.backend != BackendKind.LOCAL


class FlavorQuotaInline(admin.TabularInline):
    model = FlavorQuota
    fields = ("flavor", "resource", "nominal", "borrowing_limit")
    extra = 0

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "flavor":
            # Those of Kubernetes come and go with its own objects.
            kwargs["queryset"] = ResourceFlavor.objects.filter(cluster__backend=BackendKind.LOCAL, removed_at=None)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name in ("nominal", "borrowing_limit"):
            field.validators.append(MinValueValidator(0, _("A quota cannot be below 0.")))
        return field

    def get_queryset(self, request: HttpRequest) -> QuerySet[FlavorQuota]:
        return super().get_queryset(request).select_related("flavor")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return not _is_mirrored(obj) and super().has_add_permission(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return not _is_mirrored(obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return not _is_mirrored(obj) and super().has_delete_permission(request, obj)


@admin.register(ClusterQueue)
class ClusterQueueAdmin(admin.ModelAdmin):
    list_display = ("name", "cluster", "cohort", "stopped", "open_to_all", "removed_at", "observed_at")
    list_filter = ("cluster", "stopped", "open_to_all", ("removed_at", admin.EmptyFieldListFilter))
    list_select_related = ("cluster",)
    search_fields = ("name", "cohort")
    fields = ("cluster", "name", "cohort", "stopped", "open_to_all", "teams", "removed_at", "observed_at")
    filter_horizontal = ("teams",)
    inlines = (FlavorQuotaInline,)
    actions = ("remove",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ClusterQueue]:
        return super().get_queryset(request).select_related("cluster")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        seen = ("removed_at", "observed_at")
        if obj is None:
            return seen
        # A name is what LocalQueues and jobs refer to, so it never changes.
        return (*_KUEUES_OWN, *seen) if _is_mirrored(obj) else ("cluster", "name", *seen)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "cluster":
            kwargs["queryset"] = Cluster.objects.filter(backend=BackendKind.LOCAL)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A queue is removed by the action instead: its jobs stay."""
        return False

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None and request.method == "POST":
            # Before the form changes anything, because the audit keeps both sides.
            found._before = services.describe(found)
        return found

    def save_related(self, request: HttpRequest, form: ModelForm, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        queue: Any = form.instance
        before = getattr(queue, "_before", None) if change else None
        services.queue_changed(actor=cast(User, request.user), queue=queue, before=before)

    @admin.action(description=_("Remove: takes no jobs any more"), permissions=["change"])
    def remove(self, request: HttpRequest, queryset: QuerySet[ClusterQueue]) -> None:
        count = 0
        for queue in queryset:
            try:
                services.remove_queue(actor=cast(User, request.user), queue=queue)
            except BeamtimeError as error:
                messages.error(request, str(error))
            else:
                count += 1
        if count:
            messages.success(request, ngettext("%d queue is removed.", "%d queues are removed.", count) % count)


@admin.register(LocalQueue)
class LocalQueueAdmin(admin.ModelAdmin):
    """Made by themselves when a team first uses a ClusterQueue."""

    list_display = ("team", "cluster_queue", "provisioned_at")
    list_filter = ("team", "cluster_queue")
    list_select_related = ("team", "cluster_queue")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
