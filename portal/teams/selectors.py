"""Reads about people and teams; the only place that works out somebody's roles."""

from django.db.models import QuerySet

from portal.teams.models import Membership, Team, User
from portal.teams.policy import Action, SiteRole, may


def teams_visible_to(user: User) -> QuerySet[Team]:
    """The teams a person may look into: one's own, or all for the site's admin and auditor."""
    if not user.is_active:
        return Team.objects.none()
    if user.is_superuser or user.is_auditor:
        return Team.objects.all()
    return Team.objects.filter(memberships__user=user)


def roles_in(user: User, team: Team) -> frozenset[SiteRole]:
    """What a person is in a team, site roles included. One query."""
    if not user.is_active:
        return frozenset()
    roles: set[SiteRole] = set()
    if user.is_superuser:
        roles.add(SiteRole.ADMIN)
    if user.is_auditor:
        roles.add(SiteRole.AUDITOR)
    role = Membership.objects.filter(user=user, team=team).values_list("role", flat=True).first()
    if role:
        roles.add(SiteRole(role))
    return frozenset(roles)


def allowed(user: User, team: Team, action: Action) -> bool:
    """Whether a person may do something in a team. One query."""
    return may(roles_in(user, team), action)
