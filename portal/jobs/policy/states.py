"""The state machine of an attempt. STATES.md tells it to people; a test compares the two."""

from collections.abc import Mapping

from portal.jobs.models import TERMINAL, State

_ENDS = frozenset({State.SUCCEEDED, State.FAILED, State.LOST})

# What may follow what. Nothing follows an end: whoever wants more makes a new attempt or a new job.
TRANSITIONS: Mapping[State, frozenset[State]] = {
    # The cluster may be heard of late, so any state that it can report may come first.
    State.SUBMITTED: _ENDS
    | {State.QUEUED, State.STARTING, State.RUNNING, State.CANCELLING, State.CANCELLED, State.REJECTED},
    # Rejected even now: the object was seen, and then a part of it, its Secret, was refused.
    State.QUEUED: _ENDS | {State.STARTING, State.RUNNING, State.CANCELLING, State.REJECTED},
    # Back to the queue when Kueue takes the quota away.
    State.STARTING: _ENDS | {State.QUEUED, State.RUNNING, State.CANCELLING, State.REJECTED},
    State.RUNNING: _ENDS | {State.QUEUED, State.CANCELLING},
    # A true end that came before the deletion took effect wins.
    State.CANCELLING: frozenset({State.CANCELLED, State.SUCCEEDED, State.FAILED}),
    **dict.fromkeys(TERMINAL, frozenset()),
}

# States in which the cluster has, or should have, an object for the attempt.
IN_CLUSTER = frozenset({State.QUEUED, State.STARTING, State.RUNNING, State.CANCELLING})


def may_follow(before: State, after: State) -> bool:
    """Whether the table lets `after` come directly after `before`; staying is no transition."""
    return after in TRANSITIONS[before]


def is_terminal(state: State) -> bool:
    return state in TERMINAL
