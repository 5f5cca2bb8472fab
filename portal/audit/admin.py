"""The record of deeds in the admin: to read and to search, never to change."""

# mypy: disable-error-code="type-arg"

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from portal.audit.models import Entry


@admin.register(Entry)
class EntryAdmin(admin.ModelAdmin):
    list_display = ("at", "actor_name", "action", "subject_name")
    list_filter = ("action",)
    search_fields = ("actor_name", "action", "subject_name", "subject_id")
    date_hierarchy = "at"
    ordering = ("-at", "-pk")
    fields = ("at", "actor_name", "action", "subject_type", "subject_id", "subject_name", "before", "after")
    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
