"""What the frame of every page needs: team, counters, free GPUs, preferences. Nothing is read before it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.db.models import F, FilteredRelation, Q
from django.http import HttpRequest
from django.utils.translation import gettext

from portal.jobs.models import Job, State
from portal.jobs.selectors import free_by_model
from portal.quotas.policy import ModelRoom
from portal.teams.models import Team, User
from portal.teams.policy import Action, may
from portal.teams.selectors import site_roles, teams_visible_to
from portal.web.access import TEAM_COOKIE, seat_of

THEME_COOKIE, DENSITY_COOKIE = "bt_theme", "bt_density"
# More than these would not fit the menu; the team of the page is always known all the same.
MOST_TEAMS = 100
_NAV = {
    "home": "home",
    "team": "people",
    "submit": "submit",
    "submit-form": "submit",
    "costs": "costs",
    "queues": "queues",
}


@dataclass(frozen=True, slots=True)
class TeamItem:
    """A line of the team menu. `role` is what the person is there, in words; empty for who only looks in."""

    team: Team
    role: str

    @property
    def slug(self) -> str:
        return self.team.slug

    @property
    def name(self) -> str:
        return self.team.name


def shell(request: HttpRequest) -> dict[str, object]:
    """Context processor: `shell`, for templates/base.html."""
    return {"shell": shell_of(request)}


def shell_of(request: HttpRequest) -> "Shell":
    """The one shell of a request, so that view and frame ask the database once."""
    found = getattr(request, "_beamtime_shell", None)
    if found is None:
        found = request._beamtime_shell = Shell(request)  # type: ignore[attr-defined]
    return found


def team_items(user: User) -> list[TeamItem]:
    """The teams that a person may look into, own ones first, closed ones last. One query."""
    mine = FilteredRelation("memberships", condition=Q(memberships__user=user))
    rows = (
        teams_visible_to(user)
        .annotate(mine=mine)
        .annotate(my_role=F("mine__role"))
        .order_by(F("closed_at").asc(nulls_first=True), F("my_role").asc(nulls_last=True), "name")[:MOST_TEAMS]
    )
    words = {"lead": gettext("lead"), "member": gettext("member")}
    return [TeamItem(team, gettext("closed") if team.closed_at else words.get(team.my_role or "", "")) for team in rows]


class Shell:
    """Read by the template, part by part; a fragment that shows no frame costs no query."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    @cached_property
    def _user(self) -> User | None:
        user = getattr(self._request, "user", None)
        return user if isinstance(user, User) else None

    @cached_property
    def team(self) -> Team | None:
        """The team of the page, else the one looked at last, else the first."""
        seat = seat_of(self._request)
        if seat is not None:
            return seat.team
        wanted = self._request.COOKIES.get(TEAM_COOKIE)
        item = next((item for item in self.teams if item.slug == wanted), next(iter(self.teams), None))
        return item.team if item else None

    @cached_property
    def teams(self) -> Sequence[TeamItem]:
        return team_items(self._user) if self._user else ()

    @cached_property
    def counts(self) -> dict[str, int]:
        """Jobs of the team that run now."""
        if self.team is None:
            return {}
        return {"running": Job.objects.filter(team=self.team, state=State.RUNNING).count()}

    @cached_property
    def free(self) -> Sequence[ModelRoom]:
        """What the team may take of each GPU model at this moment."""
        return free_by_model(self.team) if self.team else ()

    @cached_property
    def can_admin(self) -> bool:
        return self._user is not None and may(site_roles(self._user), Action.USE_ADMIN)

    @cached_property
    def theme(self) -> str:
        theme = self._request.COOKIES.get(THEME_COOKIE, "")
        return theme if theme in ("light", "dark") else ""

    @cached_property
    def density(self) -> str:
        return "dense" if self._request.COOKIES.get(DENSITY_COOKIE) == "dense" else "comfortable"

    @cached_property
    def nav(self) -> str:
        match = self._request.resolver_match
        name = (match.url_name or "") if match and match.app_names == ["web"] else ""
        return "jobs" if name.startswith("job") else _NAV.get(name, "")
