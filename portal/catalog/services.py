"""The verbs of the catalog: draft, publish, deprecate, retire.

`actor` is an administrator, or None for Beamtime itself. Every verb raises `Forbidden` for anybody else.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from portal.audit import services as audit
from portal.catalog.models import Template, TemplateVersion, VersionState
from portal.catalog.policy import parse_definition
from portal.catalog.shipped import Images, Shipped, shipped_templates, starter
from portal.core.clock import now
from portal.core.errors import Conflicting, Problem, Refused
from portal.teams.models import User
from portal.teams.services import demand_admin

_MESSAGE_LENGTH = 300


@transaction.atomic
def save_template(*, actor: User | None, template: Template) -> Template:
    """Keep a template's title, summary and place in the list. Raises Django's ValidationError."""
    _may_edit(actor)
    template.full_clean()
    is_new = template.pk is None
    template.save()
    action = "catalog.template.create" if is_new else "catalog.template.change"
    after = {"slug": template.slug, "title": template.title, "summary": template.summary, "position": template.position}
    audit.record(actor=actor, action=action, subject=template, after=after)
    return template


@transaction.atomic
def delete_template(*, actor: User | None, template: Template) -> None:
    """Throw away a template that was never published, with its draft. Raises `Conflicting` if it was."""
    _may_edit(actor)
    _lock(template)
    if template.versions.exclude(state=VersionState.DRAFT).exists():
        raise Conflicting(_("“{title}” has published versions and stays. Retire them.").format(title=template.title))
    audit.record(actor=actor, action="catalog.template.delete", subject=template, before={"slug": template.slug})
    template.versions.all().delete()
    template.delete()


@transaction.atomic
def new_draft(*, actor: User | None, template: Template, source: TemplateVersion | None = None) -> TemplateVersion:
    """A draft to work on, filled from `source` or the newest version, or with a small example.

    Raises `Conflicting` if there is a draft already.
    """
    _may_edit(actor)
    _lock(template)
    draft = template.versions.filter(state=VersionState.DRAFT).first()
    if draft is not None:
        raise Conflicting(_("There is a draft already: version {number}. Edit that one.").format(number=draft.number))
    source = source or template.versions.order_by("-number").first()
    if source is not None and source.template_id != template.pk:
        raise Refused(Problem("source", _("That version belongs to another template."), "source"))
    version = TemplateVersion.objects.create(
        template=template,
        number=_next_number(template),
        definition=source.definition if source is not None else starter(_images()),
        created_by=actor,
    )
    after = {"number": version.number, "from": source.number if source is not None else None}
    audit.record(actor=actor, action="catalog.version.draft", subject=version, after=after)
    return version


@transaction.atomic
def save_draft(*, actor: User | None, version: TemplateVersion, definition: Mapping[str, Any]) -> TemplateVersion:
    """Replace a draft's definition. Raises `DefinitionInvalid` with every fault, `Conflicting` if it is no draft."""
    _may_edit(actor)
    parse_definition(definition)
    before = TemplateVersion.objects.values_list("definition", flat=True).get(pk=version.pk)
    changed = TemplateVersion.objects.filter(pk=version.pk, state=VersionState.DRAFT).update(
        definition=dict(definition)
    )
    if not changed:
        raise Conflicting(_("{version} is no draft any more. Make a new version from it.").format(version=version))
    version.refresh_from_db()
    if before != version.definition:
        audit.record(
            actor=actor,
            action="catalog.version.edit",
            subject=version,
            before={"definition": before},
            after={"definition": version.definition},
        )
    return version


@transaction.atomic
def delete_draft(*, actor: User | None, version: TemplateVersion) -> None:
    """Throw a draft away. Raises `Conflicting` if it was published meanwhile."""
    _may_edit(actor)
    deleted, _by_model = TemplateVersion.objects.filter(pk=version.pk, state=VersionState.DRAFT).delete()
    if not deleted:
        raise Conflicting(_("{version} is published and stays. Retire it instead.").format(version=version))
    audit.record(actor=actor, action="catalog.version.delete", subject=version, before={"number": version.number})


@transaction.atomic
def publish(*, actor: User | None, version: TemplateVersion) -> TemplateVersion:
    """Offer a draft to researchers; from then on its definition never changes.

    Its number becomes the highest of the template, so that the newest is always the last published. Raises
    `DefinitionInvalid`, or `Conflicting` if it is no draft.
    """
    _may_edit(actor)
    _lock(version.template)
    version.refresh_from_db()
    parse_definition(version.definition)
    newer = version.template.versions.filter(number__gt=version.number).exists()
    number = _next_number(version.template) if newer else version.number
    moved = TemplateVersion.objects.filter(pk=version.pk, state=VersionState.DRAFT).update(
        state=VersionState.PUBLISHED, published_at=now(), number=number
    )
    if not moved:
        raise Conflicting(_("{version} is published already.").format(version=version))
    version.refresh_from_db()
    audit.record(
        actor=actor,
        action="catalog.version.publish",
        subject=version,
        before={"state": str(VersionState.DRAFT)},
        after={"state": version.state, "number": version.number},
    )
    return version


def deprecate(*, actor: User | None, version: TemplateVersion, message: str) -> TemplateVersion:
    """Still usable, but people read the message: why, and what to take instead. Again with another message is fine.

    Raises `Refused` without a message, `Conflicting` for a draft or a retired version.
    """
    return _withdraw(
        actor, version, VersionState.DEPRECATED, message, (VersionState.PUBLISHED, VersionState.DEPRECATED)
    )


def retire(*, actor: User | None, version: TemplateVersion, message: str) -> TemplateVersion:
    """No longer usable for new jobs; jobs that used it stay as they are. Errors as in `deprecate`."""
    return _withdraw(actor, version, VersionState.RETIRED, message, (VersionState.PUBLISHED, VersionState.DEPRECATED))


def install_shipped() -> list[TemplateVersion]:
    """Install the shipped templates; answers the versions that are new.

    Idempotent: a version is published only where the shipped definition differs from the last one that was shipped, so
    an administrator's own newer version, or a retirement, is left alone. Titles are the administrator's once there.
    """
    found = []
    for shipped in shipped_templates(_images()):
        try:
            version = _install(shipped)
        except IntegrityError:
            continue  # another process installs at this very moment
        if version is not None:
            found.append(version)
    return found


@transaction.atomic
def _install(shipped: Shipped) -> TemplateVersion | None:
    parse_definition(shipped.definition)
    template, _made = Template.objects.get_or_create(
        slug=shipped.slug,
        defaults={
            "title": shipped.title,
            "summary": shipped.summary,
            "icon": shipped.icon,
            "position": shipped.position,
        },
    )
    _lock(template)
    last = template.versions.filter(shipped=True).order_by("-number").first()
    if last is not None and last.definition == shipped.definition:
        return None
    version = TemplateVersion.objects.create(
        template=template,
        number=_next_number(template),
        state=VersionState.PUBLISHED,
        definition=shipped.definition,
        published_at=now(),
        shipped=True,
    )
    audit.record(actor=None, action="catalog.version.publish", subject=version, after={"shipped": True})
    return version


@transaction.atomic
def _withdraw(
    actor: User | None, version: TemplateVersion, state: VersionState, message: str, allowed: tuple[VersionState, ...]
) -> TemplateVersion:
    _may_edit(actor)
    message = message.strip()
    if not message or len(message) > _MESSAGE_LENGTH or "\0" in message:
        text = _("Say in 1 to {most} characters why, and what to take instead.").format(most=_MESSAGE_LENGTH)
        raise Refused(Problem("message", text, "required"))
    before = {"state": version.state, "message": version.message}
    moved = TemplateVersion.objects.filter(pk=version.pk, state__in=allowed).update(state=state, message=message)
    if not moved:
        words = {VersionState.DRAFT: _("{version} is a draft. Publish or delete it.")}
        version.refresh_from_db()
        text = words.get(VersionState(version.state), _("{version} is retired already."))
        raise Conflicting(text.format(version=version))
    version.refresh_from_db()
    after = {"state": version.state, "message": message}
    audit.record(actor=actor, action=f"catalog.version.{_VERBS[state]}", subject=version, before=before, after=after)
    return version


_VERBS = {VersionState.DEPRECATED: "deprecate", VersionState.RETIRED: "retire"}


def _images() -> Images:
    return Images(
        shell=settings.BEAMTIME_IMAGE_SHELL,
        python=settings.BEAMTIME_IMAGE_PYTHON,
        pytorch=settings.BEAMTIME_IMAGE_PYTORCH,
    )


def _may_edit(actor: User | None) -> None:
    demand_admin(actor, _("Only an administrator may edit templates."))


def _lock(template: Template) -> None:
    """One at a time per template, where the database has row locks; elsewhere the constraints refuse the second."""
    Template.objects.select_for_update().get(pk=template.pk)


def _next_number(template: Template) -> int:
    highest = template.versions.aggregate(highest=Max("number"))["highest"]
    return int(highest or 0) + 1
