"""What the catalog offers, and the version that a request means."""

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from portal.catalog import selectors
from portal.catalog.models import Template, TemplateVersion, VersionState
from portal.core.errors import Problem, Refused


def add(slug: str, *states: str, position: int = 100) -> None:
    template = Template.objects.create(slug=slug, title=slug.title(), position=position)
    for number, state in enumerate(states, start=1):
        TemplateVersion.objects.create(template=template, number=number, state=state, published_at=timezone.now())


@pytest.fixture
def catalog(db: None) -> None:
    add("training", "published", "published", "draft", position=20)
    add("script", "published", "deprecated", position=10)
    add("old", "retired", "deprecated")
    add("gone", "retired")
    add("coming", "draft")
    Template.objects.create(slug="empty", title="Empty")


def refusal(slug: str, number: int | None = None) -> Problem:
    with pytest.raises(Refused) as caught:
        selectors.version_for(slug, number)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.usefixtures("catalog")
def test_one_version_of_each_template_in_the_administrators_order(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(1):
        found = [(version.template.slug, version.number) for version in selectors.offered()]
    assert found == [("script", 1), ("training", 2), ("old", 2)]


@pytest.mark.usefixtures("catalog")
def test_without_a_number_it_is_the_one_that_is_offered() -> None:
    for version in selectors.offered():
        assert selectors.version_for(version.template.slug) == version
        assert selectors.newest_usable(version.template) == version


@pytest.mark.usefixtures("catalog")
def test_an_older_version_may_be_named() -> None:
    assert selectors.version_for("training", 1).number == 1
    assert selectors.version_for("script", 2).state == VersionState.DEPRECATED


@pytest.mark.usefixtures("catalog")
def test_an_unknown_template_brings_the_nearest() -> None:
    assert refusal("trainning") == Problem(
        "template", "There is no template “trainning”. Did you mean “training”?", "unknown"
    )
    assert "There are: script, training, old." in refusal("x").message


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("slug", ["", "a\0b", "x" * 10_000, "'; DROP TABLE", "empty"])
def test_no_slug_breaks_the_question(slug: str) -> None:
    assert refusal(slug).field == "template"


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("number", [0, -1, 4, 2**31, 10**30])
def test_an_unknown_version_brings_those_there_are(number: int) -> None:
    problem = refusal("training", number)
    assert problem.field == "version"
    assert problem.message.endswith("There are: 1, 2.")


@pytest.mark.usefixtures("catalog")
def test_a_draft_is_nobodys_business() -> None:
    assert refusal("training", 3).code == "unknown"
    assert refusal("coming").message == ("“Coming” has no published version yet. Ask an administrator to publish one.")


@pytest.mark.usefixtures("catalog")
def test_a_retired_template_is_refused() -> None:
    assert refusal("gone").message == "Gone, version 1 is retired. Take another template."
    assert refusal("old", 1).message == "Old, version 1 is retired. Take version 2."
