"""A version is deprecated or retired with a message, and whoever asks for it learns what to take instead."""

import pytest

from portal.audit.models import Entry
from portal.catalog import selectors, services
from portal.catalog.models import Template, TemplateVersion, VersionState
from portal.core.errors import Conflicting, Forbidden, Problem, Refused
from portal.teams.models import User
from tests.factories import make_version


@pytest.fixture
def version(db: None) -> TemplateVersion:
    return make_version("training")


def refusal(slug: str, number: int | None = None) -> Problem:
    with pytest.raises(Refused) as caught:
        selectors.version_for(slug, number)
    (problem,) = caught.value.problems
    return problem


def test_a_deprecated_version_still_works_and_carries_its_message(version: TemplateVersion, admin_user: User) -> None:
    services.deprecate(actor=admin_user, version=version, message="  Take version 2. ")
    found = selectors.version_for("training", 1)
    assert (found.state, found.message) == (VersionState.DEPRECATED, "Take version 2.")
    assert Entry.objects.get(action="catalog.version.deprecate").after["message"] == "Take version 2."


def test_the_message_of_a_deprecated_version_can_be_changed(version: TemplateVersion, admin_user: User) -> None:
    services.deprecate(actor=admin_user, version=version, message="Old.")
    assert services.deprecate(actor=admin_user, version=version, message="Newer.").message == "Newer."


def test_a_retired_version_is_refused_with_its_message_and_what_to_take(
    version: TemplateVersion, admin_user: User
) -> None:
    make_version("training")
    services.retire(actor=admin_user, version=version, message="It trained on the wrong data.")
    problem = refusal("training", 1)
    assert problem.field == "version"
    assert problem.message == "Training, version 1 is retired. It trained on the wrong data. Take version 2."
    assert selectors.version_for("training").number == 2


def test_a_template_whose_every_version_is_retired_is_refused(version: TemplateVersion, admin_user: User) -> None:
    services.retire(actor=admin_user, version=version, message="Take “script”.")
    assert refusal("training") == Problem("template", "Training, version 1 is retired. Take “script”.", "retired")


@pytest.mark.parametrize("message", ["", "   ", "x" * 301, "a\0b"])
def test_a_message_is_needed(version: TemplateVersion, admin_user: User, message: str) -> None:
    for verb in (services.deprecate, services.retire):
        with pytest.raises(Refused, match="what to take instead"):
            verb(actor=admin_user, version=version, message=message)


def test_a_draft_is_not_retired_and_a_retired_one_stays_so(version: TemplateVersion, admin_user: User) -> None:
    draft = services.new_draft(actor=admin_user, template=Template.objects.create(slug="b", title="B"))
    with pytest.raises(Conflicting, match="is a draft"):
        services.retire(actor=admin_user, version=draft, message="No.")
    services.retire(actor=admin_user, version=version, message="No.")
    for verb in (services.deprecate, services.retire):
        with pytest.raises(Conflicting, match="retired already"):
            verb(actor=admin_user, version=version, message="Yes.")


def test_only_an_administrator_retires(version: TemplateVersion, lead: User) -> None:
    for verb in (services.deprecate, services.retire):
        with pytest.raises(Forbidden):
            verb(actor=lead, version=version, message="No.")
