"""What concerns me now: my jobs that run, wait or have just ended; else one thing to do first, and what is free."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from allauth.mfa.models import Authenticator
from django.db.models import Case, Q, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from portal.catalog import selectors as templates
from portal.core.clock import now
from portal.funds.selectors import prices
from portal.jobs.models import ACTIVE, Job, State
from portal.jobs.selectors import counts
from portal.teams.models import Team, User
from portal.teams.policy import Action, SiteRole, may
from portal.teams.selectors import roles_in, tokens_of
from portal.web import joblist
from portal.web.access import is_fragment, person, signed_in
from portal.web.context import shell_of
from portal.web.jobwords import JobRow, rows_of

# Mine that are going on or ended within this time; a longer look back is the list's.
LATELY = timedelta(hours=24)
MOST_JOBS, MOST_TEMPLATES = 12, 4
# Works in two minutes and costs next to nothing.
FIRST = "train-small-model"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the set-up that ticks itself."""

    words: str
    done: bool
    href: str = ""


@require_safe
@signed_in
def page(request: HttpRequest) -> HttpResponse:
    user = person(request)
    jobs = _mine(user)
    if is_fragment(request):
        return render(request, "web/home/_jobs.html", {"rows": jobs})
    team = shell_of(request).team
    roles = roles_in(user, team) if team else frozenset()
    versions = list(templates.offered())
    first = next((v for v in versions if v.template.slug == FIRST), next(iter(versions), None))
    may_submit = team is not None and team.closed_at is None and may(roles, Action.SUBMIT_JOB)
    context: dict[str, Any] = {
        "team": team,
        "lead": _lead(user, team, jobs, roles, may_submit=may_submit),
        "rows": jobs,
        "team_counts": _team_counts(team),
        "first": first if may_submit else None,
        "versions": [version for version in versions if version != first][:MOST_TEMPLATES],
        "may_submit": may_submit,
        "steps": _steps(user, team, has_jobs=bool(jobs), may_submit=may_submit),
    }
    return render(request, "web/home/page.html", context)


def _mine(user: User) -> list[JobRow]:
    """Going on first, each part with the newest on top. Two queries at most."""
    mine = Job.objects.visible_to(user).filter(submitted_by=user)
    lately = mine.filter(Q(ended_at__isnull=True) | Q(ended_at__gte=now() - LATELY))
    going_first = Case(When(state__in=ACTIVE, then=0), default=1)
    return rows_of(list(joblist.some(lately).order_by(going_first, "-submitted_at", "-pk")[:MOST_JOBS]))


def _team_counts(team: Team | None) -> dict[str, int]:
    """What the team has running and waiting. One query."""
    if team is None:
        return {"running": 0, "queued": 0}
    found = counts(Job.objects.filter(team=team, state__in=[State.RUNNING, State.QUEUED]))
    return {"running": found[State.RUNNING], "queued": found[State.QUEUED]}


def _lead(user: User, team: Team | None, rows: list[JobRow], roles: frozenset[SiteRole], *, may_submit: bool) -> str:
    """The one line under the title."""
    if team is None:
        if user.is_superuser:
            return _("There is no team yet. Begin with one; the set-up beside this leads through it.")
        return _("You are in no team yet. A lead adds you by your user name or mail address.")
    going = sum(not row.job.is_over for row in rows)
    if going:
        return ngettext("%(n)d job of yours is going on.", "%(n)d jobs of yours are going on.", going) % {"n": going}
    if rows:
        return _("Nothing of yours is going on; these ended within a day.")
    role = _role_words(roles)
    who = _("You are %(role)s of %(team)s.") % {"role": role, "team": team.name} if role else ""
    if not may_submit:
        return who or _("You see every team and change nothing.")
    return f"{who} {_('Nothing of yours is running; a first job takes about two minutes.')}".strip()


def _role_words(roles: frozenset[SiteRole]) -> str:
    words = {
        SiteRole.LEAD: _("a lead"),
        SiteRole.MEMBER: _("a member"),
        SiteRole.ADMIN: _("an administrator"),
        SiteRole.AUDITOR: _("an auditor"),
    }
    return next((word for role, word in words.items() if role in roles), "")


def _steps(user: User, team: Team | None, *, has_jobs: bool, may_submit: bool) -> list[Step]:
    """Set-up that ticks itself; empty once everything is done. Five queries at most."""
    signed_in = Step(_("Signed in"), done=True)
    second_factor = Step(
        _("Switch on two-factor sign-in"),
        done=Authenticator.objects.filter(user=user).exists(),
        href=reverse("mfa_index"),
    )
    if user.is_superuser:
        steps = [
            signed_in,
            second_factor,
            Step(_("Make a team and add its people"), done=team is not None, href=reverse("admin:teams_team_add")),
            Step(_("Enter prices"), done=prices().exists(), href=reverse("admin:funds_price_add")),
        ]
    elif not may_submit and team is not None:
        steps = [signed_in, second_factor]
    else:
        joined = _("You are in %(team)s") % {"team": team.name} if team else _("Be added to a team by one of its leads")
        steps = [
            signed_in,
            Step(joined, done=team is not None),
            Step(
                _("Submit a first job"),
                done=has_jobs or Job.objects.filter(submitted_by=user).exists(),
                href=reverse("web:submit", args=[team.slug]) if team else "",
            ),
            second_factor,
            Step(_("Make an API token for scripts"), done=tokens_of(user).exists(), href=reverse("web:tokens")),
        ]
    return [] if all(step.done for step in steps) else steps
