"""The state machine as a table: the code and STATES.md say the same, and the database keeps its promise."""

import re
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction

from portal import jobs
from portal.core.clock import now
from portal.jobs.models import ACTIVE, TERMINAL, Attempt, Job, State
from portal.jobs.policy import IN_CLUSTER, TRANSITIONS, Reason

DOCUMENT = (Path(jobs.__path__[0]) / "STATES.md").read_text()


def _rows(heading: str) -> dict[str, str]:
    section = DOCUMENT.split(f"## {heading}")[1].split("\n## ")[0]
    return {m[1].strip(): m[2].strip() for m in re.finditer(r"^\| ([a-z]+) \| ([^|]+) \|$", section, re.MULTILINE)}


def test_the_document_and_the_code_have_the_same_transitions() -> None:
    written = _rows("What may follow what")
    written.pop("from")
    told = {State(before): frozenset(re.findall(r"[a-z]+", after)) - {"nothing"} for before, after in written.items()}
    assert told == {before: frozenset(map(str, after)) for before, after in TRANSITIONS.items()}


def test_every_state_is_explained() -> None:
    explained = re.findall(r"^\| ([a-z]+) \|", DOCUMENT.split("## What may follow what")[0], re.MULTILINE)
    assert set(explained) == {"state", *State}


def test_nothing_follows_an_end_and_every_other_state_can_be_left() -> None:
    assert all(not TRANSITIONS[state] for state in TERMINAL)
    assert all(TRANSITIONS[state] & TERMINAL for state in ACTIVE)


def test_whatever_goes_on_can_be_cancelled() -> None:
    assert all(State.CANCELLING in TRANSITIONS[state] for state in ACTIVE - {State.CANCELLING})
    assert ACTIVE - {State.SUBMITTED} == IN_CLUSTER


def test_reason_codes_fit_their_column() -> None:
    longest = Attempt._meta.get_field("reason_code").max_length
    assert longest is not None
    assert all(len(reason) <= longest for reason in Reason)


@pytest.mark.parametrize("state", [State.SUBMITTED, State.CANCELLING])
def test_the_database_refuses_to_forget_what_was_promised(job: Job, state: State) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Attempt.objects.filter(job=job).update(state=state, due_at=None)
    assert Attempt.objects.filter(job=job).update(state=state, due_at=now()) == 1
