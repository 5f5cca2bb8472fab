"""Making, naming, closing and opening teams; all of it is the site administrator's."""

from django.core.exceptions import ValidationError
from django.db import transaction

from portal.audit import services as audit
from portal.core.clock import now
from portal.core.errors import Problem, Refused
from portal.teams.models import Team, User, team_slug
from portal.teams.services.common import demand_admin, locked


@transaction.atomic
def create_team(*, actor: User | None, slug: str, name: str) -> Team:
    """A new team without people. Raises `Forbidden`; `Refused` on the fields "slug" and "name"."""
    demand_admin(actor, "Only an administrator of the site makes teams.")
    name = name.strip()
    problems = []
    try:
        team_slug(slug)
    except ValidationError as error:
        problems.append(Problem("slug", error.messages[0]))
    else:
        if Team.objects.filter(slug=slug).exists():
            problems.append(Problem("slug", f"A team with the short name {slug} exists. Take another.", "taken"))
    if not 1 <= len(name) <= 120:
        problems.append(Problem("name", "Give the team a name of 1 to 120 characters."))
    if problems:
        raise Refused(problems)
    team = Team.objects.create(slug=slug, name=name)
    audit.record(actor=actor, action="team.create", subject=team, after={"slug": slug, "name": name})
    return team


@transaction.atomic
def rename_team(*, actor: User | None, team: Team, name: str) -> Team:
    """Another display name; the slug is part of namespaces and never changes. Raises `Forbidden`, `Refused`."""
    demand_admin(actor, "Only an administrator of the site renames teams.")
    name = name.strip()
    if not 1 <= len(name) <= 120:
        raise Refused(Problem("name", "Give the team a name of 1 to 120 characters."))
    team = locked(team)
    before, team.name = team.name, name
    if before != name:
        team.save(update_fields=["name"])
        audit.record(actor=actor, action="team.rename", subject=team, before={"name": before}, after={"name": name})
    return team


@transaction.atomic
def close_team(*, actor: User | None, team: Team) -> Team:
    """No new jobs and no new people from now on; everything stays readable. Idempotent. Raises `Forbidden`."""
    demand_admin(actor, "Only an administrator of the site closes teams.")
    team = locked(team)
    if team.closed_at is None:
        team.closed_at = now()
        team.save(update_fields=["closed_at"])
        audit.record(actor=actor, action="team.close", subject=team, after={"closed_at": team.closed_at.isoformat()})
    return team


@transaction.atomic
def reopen_team(*, actor: User | None, team: Team) -> Team:
    """Undo `close_team`. Idempotent. Raises `Forbidden`."""
    demand_admin(actor, "Only an administrator of the site opens teams again.")
    team = locked(team)
    if team.closed_at is not None:
        before, team.closed_at = team.closed_at.isoformat(), None
        team.save(update_fields=["closed_at"])
        audit.record(actor=actor, action="team.reopen", subject=team, before={"closed_at": before})
    return team
