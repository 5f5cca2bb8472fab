"""What the verbs of this room share."""

from portal.core.bus import announce
from portal.core.errors import Forbidden
from portal.teams.models import Team, User
from portal.teams.policy import Action, may
from portal.teams.selectors import roles_in, site_roles


def demand(actor: User | None, team: Team, action: Action) -> None:
    if actor is not None and not may(roles_in(actor, team), action):
        raise Forbidden(f"This needs a lead of {team.name} or an administrator of the site.")


def demand_admin(actor: User | None, sentence: str) -> None:
    """Raise `Forbidden` with the sentence unless this is the site's administrator, or Beamtime itself (None)."""
    if actor is not None and not may(site_roles(actor), Action.USE_ADMIN):
        raise Forbidden(sentence)


def locked(team: Team) -> Team:
    """The team's row, held until the transaction ends, so that two leads cannot remove each other at once."""
    return Team.objects.select_for_update().get(pk=team.pk)


def rights_changed(user: User) -> None:
    """Pages and sockets of this person look at their rights again."""
    announce(f"user:{user.pk}", kind="rights")
