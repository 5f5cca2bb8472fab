"""Templates for the site's administrators. Every change goes through a verb, so that it is checked and audited."""

# mypy: disable-error-code="type-arg"

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from markdown_it import MarkdownIt

from portal.catalog import preview, services
from portal.catalog.admin_forms import MessageForm, VersionForm
from portal.catalog.models import Template, TemplateVersion, VersionState
from portal.catalog.policy import DefinitionInvalid, parse_definition
from portal.catalog.policy.limits import MOST_GPUS
from portal.catalog.specs import FlavorChoice, Offer
from portal.clusters.models import ResourceFlavor
from portal.core.errors import BeamtimeError, Refused
from portal.teams.models import User

_markdown = MarkdownIt("commonmark", {"html": False}).enable("table").render
_DEFINITION_HELP = Path(__file__).parent / "DEFINITION.md"
VERSION_CHANGE = "admin:catalog_templateversion_change"


def _actor(request: HttpRequest) -> User:
    return cast(User, request.user)


class VersionInline(admin.TabularInline):
    """The versions of a template, newest first; each is edited on its own page."""

    model = TemplateVersion
    fields = readonly_fields = ("link", "state", "message", "published_at", "created_by")
    extra = 0
    can_delete = False
    ordering = ("-number",)
    verbose_name_plural = _("versions")
    # The link of each row stands in its first column already.
    show_change_link = False

    @admin.display(description=_("version"))
    def link(self, version: TemplateVersion) -> str:
        return format_html(
            '<a href="{}">{}</a>', reverse(VERSION_CHANGE, args=[version.pk]), gettext("Version %d") % version.number
        )

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Template)
class TemplateAdmin(admin.ModelAdmin):
    list_display = ("title", "slug", "summary", "position")
    search_fields = ("title", "slug")
    fields = ("title", "slug", "summary", "icon", "position")
    prepopulated_fields = {"slug": ("title",)}
    inlines = (VersionInline,)
    actions = None

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # Scripts name templates by their slug.
        return ("slug",) if obj else ()

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> dict[str, Any]:
        return {} if obj else {"slug": ("title",)}

    def get_inlines(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.inlines if obj else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        services.save_template(actor=_actor(request), template=obj)
        if not change:
            services.new_draft(actor=_actor(request), template=obj)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        draft = obj.versions.get()
        messages.success(request, gettext("The template is there. This is its first draft, with a small example."))
        return HttpResponseRedirect(reverse(VERSION_CHANGE, args=[draft.pk]))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A template with published versions stays; its versions are retired instead."""
        if obj is None or obj.versions.exclude(state=VersionState.DRAFT).exists():
            return False
        return super().has_delete_permission(request, obj)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        services.delete_template(actor=_actor(request), template=obj)


@admin.register(TemplateVersion)
class TemplateVersionAdmin(admin.ModelAdmin):
    form = VersionForm
    list_display = ("__str__", "state", "published_at", "message")
    list_filter = ("state", "template")
    list_select_related = ("template",)
    ordering = ("template__position", "template__title", "-number")
    actions = None
    change_form_template = "admin/catalog/templateversion/change_form.html"

    class Media:
        css = {"all": ("css/admin-catalog.css",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[TemplateVersion]:
        return cast(QuerySet[TemplateVersion], super().get_queryset(request).select_related("template", "created_by"))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """A version begins as a draft from another one, or with its template."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and (obj is None or obj.is_draft)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and obj is not None and obj.is_draft

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is not None and obj.is_draft:
            return ("template", "number", "state", "definition")
        return ("template", "number", "state", "message", "published_at", "created_by", "code")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("template", "number", "state", "message", "published_at", "created_by", "code")

    @admin.display(description=_("definition"))
    def code(self, version: TemplateVersion) -> str:
        text = json.dumps(version.definition, indent=2, ensure_ascii=False)
        return format_html('<pre class="bt-admin-code">{}</pre>', text)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        services.save_draft(actor=_actor(request), version=obj, definition=form.cleaned_data["definition"])

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        services.delete_draft(actor=_actor(request), version=obj)

    def get_urls(self) -> list[Any]:
        views: dict[str, Callable[..., HttpResponse]] = {"try": self.try_view} | {
            verb: self._deed_view(verb) for verb in _DEEDS
        }
        own = [
            path(f"<int:pk>/{verb}/", self.admin_site.admin_view(view), name=f"catalog_templateversion_{verb}")
            for verb, view in views.items()
        ]
        help_page = path("help/", self.admin_site.admin_view(self.help_view), name="catalog_templateversion_help")
        return [help_page, *own, *super().get_urls()]

    def help_view(self, request: HttpRequest) -> HttpResponse:
        """How a definition is written, from the file beside this one."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": _("How to write a definition"),
            "opts": self.opts,
            "text": mark_safe(_markdown(_DEFINITION_HELP.read_text(encoding="utf-8"))),  # noqa: S308 - our own file
        }
        return TemplateResponse(request, "admin/catalog/templateversion/help.html", context)

    def _version(self, request: HttpRequest, pk: int) -> TemplateVersion:
        version = self.get_queryset(request).filter(pk=pk).first()
        if version is None:
            raise Http404
        if not self.has_view_permission(request, version):
            raise PermissionDenied
        return version

    def try_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The form as a researcher would meet it, checked by the same rules; nothing is submitted."""
        version = self._version(request, pk)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Try the form of %(version)s") % {"version": version},
            "opts": self.opts,
            "version": version,
            "media": self.media,
        }
        try:
            definition = parse_definition(version.definition)
        except DefinitionInvalid as invalid:
            context["problems"] = invalid.problems
        else:
            offer = offer_of_the_site()
            posted = request.method == "POST"
            data = {name: [str(text) for text in texts] for name, texts in request.POST.lists()}
            trial = preview.tried(definition, offer, data) if posted else preview.untouched(definition, offer)
            context |= {"trial": trial, "offer": offer}
        return TemplateResponse(request, "admin/catalog/templateversion/try.html", context)

    def _deed_view(self, verb: str) -> Callable[..., HttpResponse]:
        """A page that says what a deed means, and does it when sent."""

        def view(request: HttpRequest, pk: int) -> HttpResponse:
            version = self._version(request, pk)
            question, button, needs_message = _DEEDS[verb]
            form = MessageForm(request.POST or None) if needs_message else None
            if request.method == "POST" and (form is None or form.is_valid()):
                message = form.cleaned_data["message"] if form else ""
                try:
                    after = _do(verb, _actor(request), version, message)
                except BeamtimeError as error:
                    words = (
                        [problem.message for problem in error.problems] if isinstance(error, Refused) else [str(error)]
                    )
                    messages.error(request, " ".join(words))
                    after = version
                else:
                    messages.success(request, gettext("Done: %(version)s.") % {"version": after})
                return HttpResponseRedirect(reverse(VERSION_CHANGE, args=[after.pk]))
            context = {
                **self.admin_site.each_context(request),
                "title": question % {"version": version},
                "opts": self.opts,
                "version": version,
                "form": form,
                "button": button,
                "explanation": _EXPLANATIONS[verb],
                "media": self.media,
            }
            return TemplateResponse(request, "admin/catalog/templateversion/confirm.html", context)

        return view


# Verb -> question, button, whether a message is asked for.
_DEEDS: dict[str, tuple[Any, Any, bool]] = {
    "publish": (_("Publish %(version)s?"), _("Publish"), False),
    "deprecate": (_("Deprecate %(version)s?"), _("Deprecate"), True),
    "retire": (_("Retire %(version)s?"), _("Retire"), True),
    "draft": (_("Make a new version from %(version)s?"), _("Make a draft"), False),
}
_EXPLANATIONS = {
    "publish": _("Researchers can use it at once, and nobody can change it any more."),
    "deprecate": _("It stays usable. Whoever takes it reads the message."),
    "retire": _("No new job can use it, and that cannot be taken back. Jobs that used it stay as they are."),
    "draft": _("The draft starts with the same definition. Nothing changes for researchers until it is published."),
}


def _do(verb: str, actor: User, version: TemplateVersion, message: str) -> TemplateVersion:
    match verb:
        case "publish":
            return services.publish(actor=actor, version=version)
        case "deprecate":
            return services.deprecate(actor=actor, version=version, message=message)
        case "retire":
            return services.retire(actor=actor, version=version, message=message)
    return services.new_draft(actor=actor, template=version.template, source=version)


def offer_of_the_site() -> Offer:
    """Every GPU flavor of the cluster: an administrator tries a form without a team or a queue."""
    flavors = ResourceFlavor.objects.filter(cluster__name=settings.BEAMTIME_CLUSTER_NAME, removed_at=None).exclude(
        gpu_resource=""
    )
    return Offer(
        flavors=tuple(
            FlavorChoice(flavor.name, flavor.label, flavor.gpu_model, MOST_GPUS, flavor.pretended) for flavor in flavors
        )
    )
