"""Reads about people and teams; the only place that works out somebody's roles."""

from django.db.models import Case, F, QuerySet, When

from portal.core.clock import now
from portal.teams.models import ApiToken, Membership, Role, Team, User
from portal.teams.policy import Action, SiteRole, may


def teams_visible_to(user: User) -> QuerySet[Team]:
    """The teams a person may look into: one's own, or all for the site's admin and auditor."""
    if not user.is_active:
        return Team.objects.none()
    if user.is_superuser or user.is_auditor:
        return Team.objects.all()
    return Team.objects.filter(memberships__user=user)


def site_roles(user: User) -> frozenset[SiteRole]:
    """What a person is for the whole site; empty for most. No query."""
    if not user.is_active:
        return frozenset()
    roles: set[SiteRole] = set()
    if user.is_superuser:
        roles.add(SiteRole.ADMIN)
    if user.is_auditor:
        roles.add(SiteRole.AUDITOR)
    return frozenset(roles)


def roles_in(user: User, team: Team) -> frozenset[SiteRole]:
    """What a person is in a team, site roles included. One query."""
    if not user.is_active:
        return frozenset()
    roles = set(site_roles(user))
    role = Membership.objects.filter(user=user, team=team).values_list("role", flat=True).first()
    if role:
        roles.add(SiteRole(role))
    return frozenset(roles)


def seat_in(user: User, slug: str) -> tuple[Team, frozenset[SiteRole]] | None:
    """A team that the person may look into, with what the person is in it. One query, two for roles of the site."""
    teams, roles = teams_visible_to(user).filter(slug=slug), site_roles(user)
    if roles:
        team = teams.first()
        return (team, roles_in(user, team)) if team is not None else None
    # The very membership by which the team is visible.
    member = teams.annotate(my_role=F("memberships__role")).first()
    return (member, frozenset({SiteRole(member.my_role)})) if member is not None else None


def allowed(user: User, team: Team, action: Action) -> bool:
    """Whether a person may do something in a team. One query."""
    return may(roles_in(user, team), action)


def people_of(team: Team) -> QuerySet[Membership]:
    """The team's memberships with their people, leads first, then by user name. One query."""
    lead_first = Case(When(role=Role.LEAD, then=0), default=1)
    return team.memberships.select_related("user").order_by(lead_first, "user__username")


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """One's tokens that still work, the newest first."""
    return ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=now()).order_by("-created_at", "-pk")
