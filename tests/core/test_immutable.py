"""Rows that the database itself refuses to change."""

import pytest
from django.db import IntegrityError, InternalError, transaction

from portal.audit import services as audit
from portal.audit.models import Entry
from portal.teams.models import Team, User

REFUSALS = (IntegrityError, InternalError)


@pytest.fixture
def entry(team: Team, lead: User) -> Entry:
    audit.record(actor=lead, action="team.rename", subject=team, before={"name": "A"}, after={"name": "B"})
    return Entry.objects.get()


def test_a_deed_is_written_down_with_who_and_what(entry: Entry, team: Team, lead: User) -> None:
    assert (entry.actor_name, entry.subject_id, entry.before) == (lead.username, str(team.pk), {"name": "A"})


def test_nobody_edits_the_past(entry: Entry) -> None:
    with pytest.raises(REFUSALS), transaction.atomic():
        Entry.objects.update(action="nothing happened")
    entry.refresh_from_db()
    assert entry.action == "team.rename"


def test_nobody_deletes_the_past(entry: Entry) -> None:
    with pytest.raises(REFUSALS), transaction.atomic():
        Entry.objects.all()._raw_delete("default")
    assert Entry.objects.count() == 1
