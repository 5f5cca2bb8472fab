"""An administrator begins a version, edits it, or throws it away."""

import pytest
from django.db import IntegrityError, transaction

from portal.audit.models import Entry
from portal.catalog import services
from portal.catalog.models import Template, TemplateVersion, VersionState
from portal.catalog.policy import DefinitionInvalid, parse_definition
from portal.core.errors import Conflicting, Forbidden, Refused
from portal.teams.models import User
from tests.catalog.definitions import EVERY_KIND


@pytest.fixture
def template(db: None) -> Template:
    return services.save_template(actor=None, template=Template(slug="training", title="Training"))


def publish(actor: User, template: Template) -> TemplateVersion:
    draft = services.new_draft(actor=actor, template=template)
    return services.publish(actor=actor, version=draft)


def test_the_first_draft_is_an_example_that_works(template: Template, admin_user: User) -> None:
    draft = services.new_draft(actor=admin_user, template=template)
    assert (draft.number, draft.state, draft.created_by) == (1, VersionState.DRAFT, admin_user)
    assert parse_definition(draft.definition).parameters


def test_the_next_draft_starts_from_the_newest_or_from_the_one_chosen(template: Template, admin_user: User) -> None:
    first = publish(admin_user, template)
    second = services.new_draft(actor=admin_user, template=template)
    services.save_draft(actor=admin_user, version=second, definition=EVERY_KIND)
    services.publish(actor=admin_user, version=second)
    third = services.new_draft(actor=admin_user, template=template)
    assert (third.number, third.definition) == (3, EVERY_KIND)
    services.delete_draft(actor=admin_user, version=third)
    again = services.new_draft(actor=admin_user, template=template, source=first)
    assert (again.number, again.definition) == (3, first.definition)


def test_there_is_one_draft_at_a_time(template: Template, admin_user: User) -> None:
    services.new_draft(actor=admin_user, template=template)
    with pytest.raises(Conflicting, match="version 1"):
        services.new_draft(actor=admin_user, template=template)
    with pytest.raises(IntegrityError), transaction.atomic():
        TemplateVersion.objects.create(template=template, number=2)


def test_a_version_of_another_template_is_no_source(template: Template, admin_user: User) -> None:
    other = services.save_template(actor=admin_user, template=Template(slug="other", title="Other"))
    with pytest.raises(Refused):
        services.new_draft(actor=admin_user, template=template, source=publish(admin_user, other))


def test_a_draft_is_saved_with_its_record(template: Template, admin_user: User) -> None:
    draft = services.new_draft(actor=admin_user, template=template)
    before = draft.definition
    services.save_draft(actor=admin_user, version=draft, definition=EVERY_KIND)
    entry = Entry.objects.get(action="catalog.version.edit")
    assert (entry.before, entry.after) == ({"definition": before}, {"definition": EVERY_KIND})


def test_saving_the_same_again_leaves_no_record(template: Template, admin_user: User) -> None:
    draft = services.new_draft(actor=admin_user, template=template)
    services.save_draft(actor=admin_user, version=draft, definition=draft.definition)
    assert not Entry.objects.filter(action="catalog.version.edit").exists()


def test_a_definition_with_faults_is_not_saved(template: Template, admin_user: User) -> None:
    draft = services.new_draft(actor=admin_user, template=template)
    with pytest.raises(DefinitionInvalid):
        services.save_draft(actor=admin_user, version=draft, definition={"parameters": []})
    kept = TemplateVersion.objects.get(pk=draft.pk)
    assert kept.definition == draft.definition


def test_a_published_version_is_neither_saved_nor_deleted(template: Template, admin_user: User) -> None:
    version = publish(admin_user, template)
    with pytest.raises(Conflicting):
        services.save_draft(actor=admin_user, version=version, definition=EVERY_KIND)
    with pytest.raises(Conflicting):
        services.delete_draft(actor=admin_user, version=version)
    with pytest.raises(Conflicting):
        services.delete_template(actor=admin_user, template=template)


def test_a_template_that_was_never_published_can_go(template: Template, admin_user: User) -> None:
    services.new_draft(actor=admin_user, template=template)
    services.delete_template(actor=admin_user, template=template)
    assert not Template.objects.exists()
    assert Entry.objects.filter(action="catalog.template.delete").exists()


def test_nobody_else_edits_templates(template: Template, member: User, lead: User, auditor: User) -> None:
    gone = User.objects.create(username="gone", is_superuser=True, is_active=False)
    for person in (member, lead, auditor, gone):
        with pytest.raises(Forbidden):
            services.new_draft(actor=person, template=template)
        with pytest.raises(Forbidden):
            services.save_template(actor=person, template=template)
