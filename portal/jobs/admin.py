"""Jobs in the admin: to look at, never to change. What became of a job is the cluster's word alone."""

# mypy: disable-error-code="type-arg"

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from portal.jobs.models import Attempt, Event, Job, Pod


class LookOnly:
    """Nobody adds, changes or deletes here, whoever it is."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class AttemptInline(LookOnly, admin.TabularInline):
    model = Attempt
    fields = ("number", "state", "reason", "cluster_reason", "object_name", "flavor", "due_at", "tries", "last_error")
    extra = 0


class EventInline(LookOnly, admin.TabularInline):
    model = Event
    fields = ("at", "source", "kind", "message")
    extra = 0


@admin.register(Job)
class JobAdmin(LookOnly, admin.ModelAdmin):
    list_display = ("name", "team_name", "submitted_by_name", "state", "reason_code", "submitted_at", "ended_at")
    list_filter = ("state", "team")
    search_fields = ("name", "submitted_by_name", "id")
    date_hierarchy = "submitted_at"
    show_full_result_count = False
    list_per_page = 50
    # Keys and digests mean nothing to people.
    exclude = ("idempotency_key", "request_digest")
    inlines = (AttemptInline, EventInline)


@admin.register(Pod)
class PodAdmin(LookOnly, admin.ModelAdmin):
    list_display = ("name", "phase", "node", "started_at", "ended_at", "exit_code", "reason_code")
    search_fields = ("name", "uid", "node")
    list_filter = ("phase", "reason_code")
    show_full_result_count = False
