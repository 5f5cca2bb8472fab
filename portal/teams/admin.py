"""Accounts, teams and tokens for the site's administrators. Every change goes through a verb, so that it is audited."""

# mypy: disable-error-code="type-arg"

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, QuerySet
from django.forms import BaseInlineFormSet, ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from portal.core.errors import BeamtimeError
from portal.teams import services
from portal.teams.models import ApiToken, Membership, Team, User

# Rights come from the one table in policy.py; a second system beside it would only seem to work.
if admin.site.is_registered(Group):
    admin.site.unregister(Group)

_AUDITED = ("username", "first_name", "last_name", "email", "is_active", "is_superuser", "is_auditor")


def _actor(request: HttpRequest) -> User:
    return cast(User, request.user)


@admin.register(User)
class AccountAdmin(UserAdmin):
    list_display = ("username", "email", "first_name", "last_name", "is_superuser", "is_auditor", "is_active")
    list_filter = ("is_superuser", "is_auditor", "is_active", "memberships__team")
    search_fields = ("username", "first_name", "last_name", "email")
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (_("Person"), {"fields": ("first_name", "last_name", "email")}),
        (
            _("Rights for the whole site"),
            {
                "fields": ("is_active", "is_superuser", "is_auditor"),
                "description": _("What a person may do inside a team is said in the team, not here."),
            },
        ),
        (_("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("username", "email", "usable_password", "password1", "password2")}),
    )

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        if "is_superuser" in form.base_fields:
            form.base_fields["is_superuser"].label = _("Administrator")
            form.base_fields["is_superuser"].help_text = _("May do everything everywhere, this admin included.")
        return form

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        kept = User.objects.filter(pk=obj.pk).first() if change else None
        # Django opens its admin by this flag; ours is the administrator's right, so the two are one.
        obj.is_staff = obj.is_superuser
        super().save_model(request, obj, form, change)
        before = {name: getattr(kept, name) for name in _AUDITED} if kept else {}
        after = {name: getattr(obj, name) for name in _AUDITED}
        changed = [name for name in _AUDITED if before.get(name) != after[name]]
        services.account_changed(
            actor=_actor(request),
            user=obj,
            before={name: before[name] for name in changed if name in before},
            after={name: after[name] for name in changed},
        )

    @transaction.atomic
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        return super().user_change_password(request, id, form_url)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        if request.resolver_match and request.resolver_match.url_name == "auth_user_password_change":
            services.account_changed(actor=_actor(request), user=obj, before={}, after={"password": "set anew"})
        return super().log_change(request, obj, message)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """An account is made inactive instead: its jobs, costs and audit entries name a person for ever."""
        return False


class MembershipFormSet(BaseInlineFormSet):
    def clean(self) -> None:
        super().clean()
        for form in self.forms:
            data = getattr(form, "cleaned_data", None) or {}
            if form.instance.pk or not data.get("user") or data.get("DELETE"):
                continue
            if self.instance.closed_at is not None:
                raise ValidationError(_("This team is closed and takes no new people. Open it again first."))
            if not data["user"].is_active:
                form.add_error("user", _("This account is not active. Activate it first."))


class MembershipInline(admin.TabularInline):
    model = Membership
    formset = MembershipFormSet
    fields = ("user", "role", "joined_at")
    readonly_fields = ("joined_at",)
    autocomplete_fields = ("user",)
    extra = 0

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)
        widget = formset.form.base_fields["user"].widget
        for name in ("can_add_related", "can_change_related", "can_delete_related", "can_view_related"):
            setattr(widget, name, False)
        return formset

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return self.readonly_fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return super().get_queryset(request).select_related("user")


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin):
    list_display = ("name", "slug", "people", "created_at", "closed_at")
    list_filter = (("closed_at", admin.EmptyFieldListFilter),)
    search_fields = ("name", "slug", "memberships__user__username")
    fields = ("name", "slug", "created_at", "closed_at")
    inlines = (MembershipInline,)
    actions = ("close", "reopen")

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> dict[str, Any]:
        return {} if obj else {"slug": ("name",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Team]:
        return cast(QuerySet[Team], super().get_queryset(request).annotate(_people=Count("memberships")))

    @admin.display(description=_("people"), ordering="_people")
    def people(self, team: Any) -> int:
        return int(team._people)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # The slug is part of the team's namespaces, which cannot be renamed.
        return ("slug", "created_at", "closed_at") if obj else ("created_at", "closed_at")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A team is closed instead: its jobs and costs stay."""
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        if change:
            services.rename_team(actor=_actor(request), team=obj, name=obj.name)
            return
        made = services.create_team(actor=_actor(request), slug=obj.slug, name=obj.name)
        obj.pk, obj.created_at = made.pk, made.created_at
        obj._state.adding = False

    def save_formset(self, request: HttpRequest, form: ModelForm, formset: Any, change: bool) -> None:
        actor, team = _actor(request), form.instance
        formset.save(commit=False)
        formset.save_m2m()
        try:
            with transaction.atomic():
                for membership in formset.deleted_objects:
                    services.remove_member(actor=actor, team=team, user=membership.user)
                for membership, fields in formset.changed_objects:
                    if "role" in fields:
                        services.change_role(actor=actor, team=team, user=membership.user, role=membership.role)
                for membership in formset.new_objects:
                    username = membership.user.get_username()
                    services.add_member(actor=actor, team=team, username=username, role=membership.role)
        except BeamtimeError as error:
            messages.error(request, _("People were not changed: %(why)s") % {"why": error})

    @admin.action(description=_("Close: no new jobs, no new people"), permissions=["change"])
    def close(self, request: HttpRequest, queryset: QuerySet[Team]) -> None:
        count = len([services.close_team(actor=_actor(request), team=team) for team in queryset])
        messages.success(request, ngettext("%d team is closed.", "%d teams are closed.", count) % count)

    @admin.action(description=_("Open again"), permissions=["change"])
    def reopen(self, request: HttpRequest, queryset: QuerySet[Team]) -> None:
        count = len([services.reopen_team(actor=_actor(request), team=team) for team in queryset])
        messages.success(request, ngettext("%d team is open.", "%d teams are open.", count) % count)


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):
    """Who has keys, never the keys. People make their own; an administrator can only end them."""

    list_display = ("name", "user", "prefix", "scope", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_filter = ("scope", ("revoked_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "user__username", "prefix")
    list_select_related = ("user",)
    fields = ("name", "user", "prefix", "scope", "created_at", "expires_at", "last_used_at", "revoked_at")
    readonly_fields = fields
    actions = ("revoke",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.action(description=_("Revoke"), permissions=["view"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        tokens = [services.revoke_token_as_admin(actor=_actor(request), token=token) for token in queryset]
        count = len(tokens)
        messages.success(request, ngettext("%d token is revoked.", "%d tokens are revoked.", count) % count)
