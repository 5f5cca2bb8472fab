"""Verbs about teams, the people in them and the tokens of their programs.

Every verb is one transaction with its audit entry inside. `actor` is None only for commands of the operator, who
already holds the machine; everybody else is measured by the table in `policy`.
"""

from portal.teams.services.accounts import account_changed
from portal.teams.services.common import demand_admin
from portal.teams.services.members import add_member, change_role, remove_member
from portal.teams.services.teams import close_team, create_team, rename_team, reopen_team
from portal.teams.services.tokens import (
    authenticate_token,
    issue_token,
    revoke_token,
    revoke_token_as_admin,
)

__all__ = [
    "account_changed",
    "add_member",
    "authenticate_token",
    "change_role",
    "close_team",
    "create_team",
    "demand_admin",
    "issue_token",
    "remove_member",
    "rename_team",
    "reopen_team",
    "revoke_token",
    "revoke_token_as_admin",
]
