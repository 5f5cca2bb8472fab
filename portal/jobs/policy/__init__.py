"""Everything about jobs that can be worked out without a database."""

from portal.jobs.policy.reasons import Reason
from portal.jobs.policy.reduce import reduce
from portal.jobs.policy.snapshot import AttemptSnapshot, Happening, PodSnapshot, Reduction, Terms, Words
from portal.jobs.policy.states import IN_CLUSTER, TRANSITIONS, is_terminal, may_follow

__all__ = [
    "IN_CLUSTER",
    "TRANSITIONS",
    "AttemptSnapshot",
    "Happening",
    "PodSnapshot",
    "Reason",
    "Reduction",
    "Terms",
    "Words",
    "is_terminal",
    "may_follow",
    "reduce",
]
