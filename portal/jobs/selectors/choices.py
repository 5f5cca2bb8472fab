"""Before a job: what a team may choose in a form."""

from typing import Any

from portal.catalog.models import TemplateVersion
from portal.catalog.policy import json_schema, parse_definition
from portal.catalog.specs import Offer
from portal.jobs.policy.choice import offer_of
from portal.quotas.selectors import book_of
from portal.teams.models import Team


def offer_for(team: Team, *, queue: str = "") -> Offer:
    """What a team may choose in a form: the GPU flavors of one queue, or of all that are open to it. Two queries."""
    book = book_of(team)
    return offer_of(book, [found] if (found := book.queue(queue)) is not None else book.queues)


def values_schema(team: Team, version: TemplateVersion) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a version's values, with the flavors that are open to the team."""
    return json_schema(parse_definition(version.definition), offer_for(team))
