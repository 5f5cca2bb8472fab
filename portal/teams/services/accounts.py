"""What administrators change of accounts."""

from collections.abc import Mapping

from portal.audit import services as audit
from portal.teams.models import User
from portal.teams.services.common import rights_changed


def account_changed(*, actor: User, user: User, before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Write down what an administrator changed of an account, inside the caller's transaction, and tell open pages.

    `before` and `after` hold only the fields that differ, and never a password.
    """
    if before != after:
        audit.record(actor=actor, action="account.change", subject=user, before=before, after=after)
        rights_changed(user)
