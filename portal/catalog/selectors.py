"""Reads of the catalog."""

import json
from functools import lru_cache
from typing import NoReturn

from django.db.models import Case, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.utils.translation import gettext as _

from portal.catalog.models import Template, TemplateVersion, VersionState
from portal.catalog.policy import parse_definition
from portal.catalog.policy.words import hint, short
from portal.catalog.specs import Definition
from portal.core.errors import Problem, Refused

# Which of a template's versions stands for it: a published one before a deprecated one, then the highest number.
_RANK = Case(When(state=VersionState.PUBLISHED, then=Value(0)), default=Value(1), output_field=IntegerField())
_USABLE = Q(state__in=(VersionState.PUBLISHED, VersionState.DEPRECATED))
_LARGEST_NUMBER = 2**31 - 1


def offered() -> QuerySet[TemplateVersion]:
    """What the catalog page shows: one version per template that has any to offer, with its template. One query."""
    best = TemplateVersion.objects.filter(_USABLE, template=OuterRef("template")).order_by(_RANK, "-number")
    return (
        TemplateVersion.objects.filter(pk=Subquery(best.values("pk")[:1]))
        .select_related("template")
        .order_by("template__position", "template__title")
    )


def version_for(slug: str, number: int | None = None) -> TemplateVersion:
    """The version to use, with its template; without a number the one that the catalog offers.

    Raises `Refused` under "template" or "version" for what is unknown, unpublished or retired, with the remedy.
    """
    versions = TemplateVersion.objects.filter(template__slug=slug).select_related("template").order_by("number")
    # PostgreSQL takes no NUL in a text, and neither database numbers beyond its integers.
    if "\0" in slug:
        raise Refused(_unknown_template(slug))
    if number is None:
        found = versions.filter(_USABLE).order_by(_RANK, "-number").first()
    else:
        found = versions.filter(number=number).first() if 0 < number <= _LARGEST_NUMBER else None
    # Looked at only when there is something to explain.
    if found is None and not versions.exists():
        raise Refused(_unknown_template(slug))
    if number is None:
        return found or _none_usable(versions)
    if found is None or found.is_draft:
        usable = [str(n) for n in versions.filter(_USABLE).order_by("number").values_list("number", flat=True)]
        message = _("{template} has no published version {number}.").format(template=short(slug), number=number)
        raise Refused(Problem("version", f"{message} {hint('', usable)}", "unknown"))
    if found.state == VersionState.RETIRED:
        raise Refused(_retired("version", found, versions))
    return found


def newest_usable(template: Template) -> TemplateVersion | None:
    """The version of a template that the catalog offers, without its definition; or None. One query."""
    usable = TemplateVersion.objects.filter(_USABLE, template=template).defer("definition").order_by("-number")
    # Few, and so sorted here: pages ask this often, and Django takes longer over the words of an order by rank.
    return min(usable, key=lambda version: version.state != VersionState.PUBLISHED, default=None)


def definition_of(version: TemplateVersion) -> Definition:
    """The parsed definition. Raises `DefinitionInvalid`, which for a published version is a fault of ours."""
    return _parsed(json.dumps(version.definition))


# Pure: the same text is always the same definition, and what is published never changes.
@lru_cache(maxsize=64)
def _parsed(text: str) -> Definition:
    return parse_definition(json.loads(text))


def _none_usable(versions: QuerySet[TemplateVersion]) -> NoReturn:
    retired = versions.filter(state=VersionState.RETIRED).order_by("-number").first()
    if retired is not None:
        raise Refused(_retired("template", retired, versions))
    message = _("“{title}” has no published version yet. Ask an administrator to publish one.")
    raise Refused(Problem("template", message.format(title=versions[0].template.title), "unpublished"))


def _unknown_template(slug: str) -> Problem:
    slugs = list(offered().values_list("template__slug", flat=True))
    message = _("There is no template “{slug}”.").format(slug=short(slug))
    return Problem("template", f"{message} {hint(slug, slugs)}", "unknown")


def _retired(field: str, version: TemplateVersion, versions: QuerySet[TemplateVersion]) -> Problem:
    newest = versions.filter(_USABLE).order_by(_RANK, "-number").first()
    words = [_("{version} is retired.").format(version=version), version.message]
    if newest is not None:
        words.append(_("Take version {number}.").format(number=newest.number))
    elif not version.message:
        words.append(_("Take another template."))
    return Problem(field, " ".join(word for word in words if word), "retired")
