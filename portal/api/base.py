"""What every address of the API has in common."""

from typing import cast

from rest_framework.request import Request
from rest_framework.views import APIView

from portal.core.errors import Problem, Refused
from portal.jobs.services.draft import LONGEST_KEY
from portal.teams.models import Team, User
from portal.teams.selectors import teams_visible_to


class View(APIView):
    """An address of the API. Whoever gets here is signed in (`ScopePermission`)."""

    def me(self) -> User:
        return cast(User, self.request.user)

    def team_named(self, slug: str, *, field: str = "team") -> Team:
        """A team that the caller may see. Raises `Refused`; a foreign team reads like a missing one."""
        teams = {team.slug: team for team in teams_visible_to(self.me())}
        if slug not in teams:
            yours = ", ".join(sorted(teams)) or "none yet"
            raise Refused(Problem(field, f"You are in no team “{slug[:60]}”. Your teams: {yours}.", "unknown"))
        return teams[slug]


def idempotency_key(request: Request) -> str | None:
    """The `Idempotency-Key` header. Raises `Refused` when it cannot be kept."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= LONGEST_KEY:
        message = f"The key has {len(key)} characters; give 1 to {LONGEST_KEY}."
        raise Refused(Problem("Idempotency-Key", message, "length"))
    return key
