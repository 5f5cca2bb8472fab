"""Who is in a team, and as what."""

from django.db import transaction
from django.db.models import Q

from portal.audit import services as audit
from portal.core.errors import Missing, Problem, Refused
from portal.teams.models import Membership, Role, Team, User
from portal.teams.policy import Action, may
from portal.teams.selectors import site_roles
from portal.teams.services.common import demand, locked, rights_changed


@transaction.atomic
def add_member(*, actor: User | None, team: Team, username: str, role: str = Role.MEMBER) -> Membership:
    """Let a person into a team. `username` may also be the person's mail address.

    Raises `Forbidden`; `Refused` on "username" (unknown, inactive, there already), "role", or "" (team closed).
    """
    demand(actor, team, Action.MANAGE_MEMBERS)
    team = locked(team)
    if team.closed_at is not None:
        raise Refused(Problem("", f"{team.name} is closed and takes no new people.", "closed"))
    role = _checked_role(role)
    user = _person(username)
    if Membership.objects.filter(team=team, user=user).exists():
        raise Refused(Problem("username", f"{user.get_username()} is in {team.name} already.", "duplicate"))
    membership = Membership.objects.create(team=team, user=user, role=role)
    audit.record(
        actor=actor, action="team.add_member", subject=team, after={"username": user.get_username(), "role": role}
    )
    rights_changed(user)
    return membership


@transaction.atomic
def change_role(*, actor: User | None, team: Team, user: User, role: str) -> Membership:
    """Make a person of the team a lead or a member. No-op if they are that already.

    Raises `Forbidden`; `Missing` for somebody outside the team; `Refused` on "role" when it would leave no lead.
    """
    demand(actor, team, Action.MANAGE_MEMBERS)
    role = _checked_role(role)
    membership = _membership(locked(team), user)
    before = membership.role
    if before == role:
        return membership
    if before == Role.LEAD:
        _keep_a_lead(actor, team, "role")
    membership.role = role
    membership.save(update_fields=["role"])
    audit.record(
        actor=actor,
        action="team.change_role",
        subject=team,
        before={"username": user.get_username(), "role": before},
        after={"username": user.get_username(), "role": role},
    )
    rights_changed(user)
    return membership


@transaction.atomic
def remove_member(*, actor: User | None, team: Team, user: User) -> None:
    """End a person's access to a team at once; leaving it oneself is open to everybody in it.

    Jobs stay with the team, under the names they were submitted with. Raises `Forbidden`, `Missing`; `Refused` when
    the last lead would go.
    """
    leaves = actor is not None and actor.pk == user.pk
    demand(actor, team, Action.LEAVE_TEAM if leaves else Action.MANAGE_MEMBERS)
    membership = _membership(locked(team), user)
    if membership.role == Role.LEAD:
        _keep_a_lead(actor, team, "")
    before = {"username": user.get_username(), "role": membership.role}
    membership.delete()
    audit.record(actor=actor, action="team.remove_member", subject=team, before=before)
    rights_changed(user)


def _membership(team: Team, user: User) -> Membership:
    membership = Membership.objects.filter(team=team, user=user).first()
    if membership is None:
        raise Missing(f"{user.get_username()} is not in {team.name}")
    return membership


def _keep_a_lead(actor: User | None, team: Team, field: str) -> None:
    """A team without a lead could not help itself; only an administrator may leave it so."""
    if actor is None or may(site_roles(actor), Action.USE_ADMIN):
        return
    if Membership.objects.filter(team=team, role=Role.LEAD).count() <= 1:
        raise Refused(Problem(field, f"{team.name} needs a lead. Make another person a lead first.", "last_lead"))


def _checked_role(role: str) -> Role:
    if role not in Role.values:
        raise Refused(Problem("role", "Choose member or lead."))
    return Role(role)


def _person(username: str) -> User:
    """The active person of this user name or mail address. Raises `Refused`; inactive reads like unknown."""
    wanted = username.strip()
    if not wanted:
        raise Refused(Problem("username", "Type the person's user name or mail address.", "required"))
    found = list(User.objects.filter(is_active=True).filter(Q(username=wanted) | Q(email__iexact=wanted))[:2])
    exact = [user for user in found if user.username == wanted] or found
    if len(exact) != 1:
        known = (
            "Several accounts use this mail address. Type the user name."
            if exact
            else ("Nobody here has this user name or mail address. Ask an administrator to make the account first.")
        )
        raise Refused(Problem("username", known, "unknown"))
    return exact[0]
