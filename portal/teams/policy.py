"""The one table of what each role may do. Every door asks it; nothing else decides about rights."""

from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """Everything a person may want to do, named once."""

    SEE_TEAM = "see_team"
    SUBMIT_JOB = "submit_job"
    SEE_JOB = "see_job"
    CANCEL_OWN_JOB = "cancel_own_job"
    CANCEL_ANY_JOB = "cancel_any_job"
    SEE_COSTS = "see_costs"
    MANAGE_MEMBERS = "manage_members"
    LEAVE_TEAM = "leave_team"
    USE_ADMIN = "use_admin"


class SiteRole(StrEnum):
    """What a person is in one team, or for the whole site."""

    MEMBER = "member"
    LEAD = "lead"
    ADMIN = "admin"
    AUDITOR = "auditor"


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may do an action, and the sentence that says so to a person."""

    sentence: str
    roles: frozenset[SiteRole]


_EVERYONE = frozenset(SiteRole)
_TEAM = frozenset({SiteRole.MEMBER, SiteRole.LEAD, SiteRole.ADMIN})
_LEADS = frozenset({SiteRole.LEAD, SiteRole.ADMIN})

TABLE: dict[Action, Rule] = {
    Action.SEE_TEAM: Rule("See the team's people, jobs and queues.", _EVERYONE),
    Action.SEE_JOB: Rule("See the team's jobs with their logs, events and manifests.", _EVERYONE),
    Action.SEE_COSTS: Rule("See what the team uses and spends.", _EVERYONE),
    Action.SUBMIT_JOB: Rule("Submit jobs and run them again.", _TEAM),
    Action.CANCEL_OWN_JOB: Rule("Cancel or stop one's own jobs.", _TEAM),
    Action.CANCEL_ANY_JOB: Rule("Cancel or stop any job of the team.", _LEADS),
    Action.MANAGE_MEMBERS: Rule("Add and remove people, and make leads.", _LEADS),
    Action.LEAVE_TEAM: Rule("Leave the team.", frozenset({SiteRole.MEMBER, SiteRole.LEAD})),
    Action.USE_ADMIN: Rule("Edit teams, templates, queues and prices in the admin.", frozenset({SiteRole.ADMIN})),
}


def may(roles: frozenset[SiteRole], action: Action) -> bool:
    """Whether somebody with these roles may do this. No role, no right."""
    return bool(roles & TABLE[action].roles)
