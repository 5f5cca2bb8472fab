"""Clusters and their ResourceFlavors for the site's administrators.

A cluster comes from the settings and is only shown. The flavors of this machine are edited here; those of Kubernetes
are Kueue's, and only what Kueue does not know (what the hardware is called) can be filled in.
"""

# mypy: disable-error-code="type-arg"

from typing import Any, cast

from django.contrib import admin
from django.db.models import QuerySet
from django.forms import JSONField, ModelForm, ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from portal.audit import services as audit
from portal.clusters.models import BackendKind, Cluster, ResourceFlavor
from portal.core import hints

_AUDITED = ("gpu_model", "gpu_memory_gib", "gpu_resource", "node_labels", "pretended")
_KUEUES_OWN = ("cluster", "name", "gpu_resource", "node_labels", "pretended")


def _is_mirrored(flavor: ResourceFlavor | None) -> bool:
    return flavor is not None and flavor.cluster.backend != BackendKind.LOCAL


@admin.register(Cluster)
class ClusterAdmin(admin.ModelAdmin):
    list_display = ("name", "backend", "created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class FlavorForm(ModelForm):
    node_labels = JSONField(
        required=False, help_text=_('Labels of the nodes that belong to it, as {"key": "value"}. Empty: every node.')
    )

    class Meta:
        model = ResourceFlavor
        fields = ("cluster", "name", "gpu_model", "gpu_memory_gib", "gpu_resource", "node_labels", "pretended")
        help_texts = {
            "gpu_model": _("What people and prices call the hardware, such as NVIDIA H100. Empty: no GPUs."),
            "pretended": _("These GPUs do not exist; it is said wherever they appear."),
        }

    def clean_node_labels(self) -> dict[str, str]:
        found = self.cleaned_data.get("node_labels") or {}
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise ValidationError(_('Write it as {"key": "value"}, with texts only.'))
        return found


@admin.register(ResourceFlavor)
class ResourceFlavorAdmin(admin.ModelAdmin):
    form = FlavorForm
    list_display = ("name", "cluster", "gpu_model", "gpu_memory_gib", "pretended", "removed_at")
    list_filter = ("cluster", "pretended", ("removed_at", admin.EmptyFieldListFilter))
    list_select_related = ("cluster",)
    search_fields = ("name", "gpu_model")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ResourceFlavor]:
        return super().get_queryset(request).select_related("cluster")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        if obj is None:
            return ()
        # A name is what quotas and past jobs refer to, so it never changes.
        return _KUEUES_OWN if _is_mirrored(obj) else ("cluster", "name")

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "cluster":
            kwargs["queryset"] = Cluster.objects.filter(backend=BackendKind.LOCAL)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Past jobs keep their flavor; one that no queue names any more is offered to nobody."""
        return False

    def save_model(self, request: HttpRequest, obj: ResourceFlavor, form: Any, change: bool) -> None:
        before = _facts(ResourceFlavor.objects.get(pk=obj.pk)) if change else None
        super().save_model(request, obj, form, change)
        after = _facts(obj)
        if before == after:
            return
        action = "flavor.change" if change else "flavor.add"
        audit.record(actor=cast(Any, request.user), action=action, subject=obj, before=before, after=after)
        # Gives the rows of this machine to its backend; in Kubernetes it reads the objects once more.
        hints.nudge("quotas.synchronise")


def _facts(flavor: ResourceFlavor) -> dict[str, Any]:
    return {name: getattr(flavor, name) for name in _AUDITED}
