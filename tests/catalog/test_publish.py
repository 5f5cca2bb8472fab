"""From draft to published, and then fixed: by the verbs, and by the database itself."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, InternalError, connection, transaction
from django.utils import timezone

from portal.audit.models import Entry
from portal.catalog import services
from portal.catalog.models import Template, TemplateVersion, VersionState
from portal.catalog.policy import DefinitionInvalid
from portal.core.errors import Conflicting, Forbidden
from portal.teams.models import User
from tests.catalog.definitions import EVERY_KIND

# PostgreSQL's trigger says integrity_constraint_violation, SQLite's RAISE(ABORT) comes as an integrity error.
REFUSALS = (IntegrityError, InternalError)
OTHER: dict[str, Any] = {"parameters": [], "work": {"image": "busybox:1.37", "command": ["true"]}}


@pytest.fixture
def template(db: None) -> Template:
    return services.save_template(actor=None, template=Template(slug="training", title="Training"))


@pytest.fixture
def draft(template: Template, admin_user: User) -> TemplateVersion:
    version = services.new_draft(actor=admin_user, template=template)
    return services.save_draft(actor=admin_user, version=version, definition=EVERY_KIND)


@pytest.fixture
def published(draft: TemplateVersion, admin_user: User) -> TemplateVersion:
    return services.publish(actor=admin_user, version=draft)


def test_a_draft_is_published_with_the_moment_and_a_record(draft: TemplateVersion, admin_user: User) -> None:
    version = services.publish(actor=admin_user, version=draft)
    assert (version.state, version.definition) == (VersionState.PUBLISHED, EVERY_KIND)
    assert version.published_at is not None
    entry = Entry.objects.get(action="catalog.version.publish")
    assert (entry.actor_name, entry.before, entry.after["state"]) == ("admin", {"state": "draft"}, "published")


def test_publishing_twice_is_refused(published: TemplateVersion, admin_user: User) -> None:
    with pytest.raises(Conflicting):
        services.publish(actor=admin_user, version=published)


def test_a_broken_draft_is_not_published(draft: TemplateVersion, admin_user: User) -> None:
    TemplateVersion.objects.filter(pk=draft.pk).update(definition={"parameters": []})
    with pytest.raises(DefinitionInvalid):
        services.publish(actor=admin_user, version=draft)
    draft.refresh_from_db()
    assert draft.state == VersionState.DRAFT


def test_only_an_administrator_publishes(draft: TemplateVersion, lead: User, auditor: User) -> None:
    for person in (lead, auditor):
        with pytest.raises(Forbidden):
            services.publish(actor=person, version=draft)


def test_the_last_published_is_the_newest(draft: TemplateVersion, template: Template, admin_user: User) -> None:
    TemplateVersion.objects.create(
        template=template, number=2, state=VersionState.PUBLISHED, definition=OTHER, published_at=timezone.now()
    )
    assert services.publish(actor=admin_user, version=draft).number == 3


# --- what the database refuses, whoever asks ---------------------------------------------------------------------

Change = Callable[[TemplateVersion], object]


def rows(version: TemplateVersion) -> Any:
    return TemplateVersion.objects.filter(pk=version.pk)


FORBIDDEN: dict[str, Change] = {
    "another definition": lambda version: rows(version).update(definition=OTHER),
    "another number": lambda version: rows(version).update(number=99),
    "another template": lambda version: rows(version).update(template=Template.objects.create(slug="b", title="B")),
    "another moment": lambda version: rows(version).update(published_at=timezone.now()),
    "no moment": lambda version: rows(version).update(published_at=None),
    "back to a draft": lambda version: rows(version).update(state=VersionState.DRAFT),
    "a save through the model": lambda version: TemplateVersion(
        pk=version.pk, template=version.template, number=1, state=version.state, definition=OTHER
    ).save(),
    "deletion": lambda version: rows(version)._raw_delete("default"),
    "deletion through the model": lambda version: version.delete(),
}


@pytest.mark.parametrize("change", FORBIDDEN.values(), ids=FORBIDDEN.keys())
@pytest.mark.parametrize("state", [VersionState.PUBLISHED, VersionState.DEPRECATED, VersionState.RETIRED])
def test_a_published_version_never_changes(published: TemplateVersion, state: str, change: Change) -> None:
    rows(published).update(state=state)
    published.refresh_from_db()
    with pytest.raises(REFUSALS), transaction.atomic():
        change(published)
    again = TemplateVersion.objects.get(pk=published.pk)
    assert (again.definition, again.number, again.state) == (EVERY_KIND, 1, state)
    assert (again.template_id, again.published_at) == (published.template_id, published.published_at)


@pytest.mark.parametrize(
    ("before", "after"),
    [("deprecated", "published"), ("retired", "published"), ("retired", "deprecated")],
)
def test_the_state_only_moves_on(published: TemplateVersion, before: str, after: str) -> None:
    rows(published).update(state=before)
    with pytest.raises(REFUSALS), transaction.atomic():
        rows(published).update(state=after)


def test_plain_sql_is_refused_too(published: TemplateVersion) -> None:
    for statement in (
        "UPDATE catalog_templateversion SET number = 7",
        "DELETE FROM catalog_templateversion",
    ):
        with pytest.raises(REFUSALS), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)


def test_state_and_message_may_move_on(published: TemplateVersion) -> None:
    for state in (VersionState.DEPRECATED, VersionState.RETIRED):
        assert rows(published).update(state=state, message=f"now {state}") == 1


def test_the_author_may_leave(published: TemplateVersion, draft: TemplateVersion) -> None:
    author = User.objects.create_user("author")
    rows(published).update(created_by=author)
    author.delete()
    assert TemplateVersion.objects.get(pk=published.pk).created_by is None


def test_a_draft_may_change_and_go(draft: TemplateVersion) -> None:
    assert rows(draft).update(definition=OTHER, number=5) == 1
    assert rows(draft).delete()[0] == 1
