"""A team's page: its people and the queues it may use. Leads change who is in it."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from portal.core.errors import Refused
from portal.jobs.selectors import admitted, held_by
from portal.quotas.selectors import queues_open_to, rows_now
from portal.teams import services
from portal.teams.models import Membership, User
from portal.teams.policy import TABLE, Action, SiteRole
from portal.teams.selectors import people_of
from portal.web.access import Seat, in_team
from portal.web.forms import AddMemberForm, show_problems
from portal.web.queues import queue_cards


@require_safe
@in_team(Action.SEE_TEAM)
def page(request: HttpRequest, seat: Seat) -> HttpResponse:
    return _page(request, seat, AddMemberForm())


@require_POST
@in_team(Action.MANAGE_MEMBERS)
def add(request: HttpRequest, seat: Seat) -> HttpResponse:
    """Let somebody in; what is wrong stands at its field, with what was typed."""
    form = AddMemberForm(request.POST)
    if form.is_valid():
        try:
            membership = services.add_member(actor=seat.user, team=seat.team, **form.cleaned_data)
        except Refused as refused:
            show_problems(form, refused)
        else:
            words = {"person": membership.user.get_username(), "team": seat.team.name}
            messages.success(request, _("%(person)s is in %(team)s now.") % words)
            return redirect("web:team", seat.team.slug)
    return _page(request, seat, form, status=422)


@require_POST
@in_team(Action.MANAGE_MEMBERS)
def role(request: HttpRequest, seat: Seat) -> HttpResponse:
    """Make somebody a lead or a member."""
    user = _user_in(seat, request.POST.get("username", ""))
    try:
        services.change_role(actor=seat.user, team=seat.team, user=user, role=request.POST.get("role", ""))
    except Refused as refused:
        messages.error(request, refused.problems[0].message)
    return redirect("web:team", seat.team.slug)


@require_POST
@in_team(Action.SEE_TEAM)
def remove(request: HttpRequest, seat: Seat) -> HttpResponse:
    """End somebody's access, or leave the team oneself."""
    user = _user_in(seat, request.POST.get("username", ""))
    try:
        services.remove_member(actor=seat.user, team=seat.team, user=user)
    except Refused as refused:
        messages.error(request, refused.problems[0].message)
        return redirect("web:team", seat.team.slug)
    words = {"person": user.get_username(), "team": seat.team.name}
    if user == seat.user and not seat.roles & {SiteRole.ADMIN, SiteRole.AUDITOR}:
        messages.success(request, _("You have left %(team)s.") % words)
        return redirect("web:home")
    messages.success(request, _("%(person)s is no longer in %(team)s.") % words)
    return redirect("web:team", seat.team.slug)


def _user_in(seat: Seat, username: str) -> User:
    """Somebody of this team; anybody else is missing, known to the site or not."""
    return get_object_or_404(Membership.objects.select_related("user"), team=seat.team, user__username=username).user


def _page(request: HttpRequest, seat: Seat, form: AddMemberForm, status: int = 200) -> HttpResponse:
    open_ids = set(queues_open_to(seat.team).values_list("pk", flat=True))
    rows = rows_now(held_by(admitted()))
    context: dict[str, Any] = {
        "seat": seat,
        "team": seat.team,
        "people": list(people_of(seat.team)),
        "form": form,
        "may_manage": seat.may(Action.MANAGE_MEMBERS),
        "may_leave": seat.may(Action.LEAVE_TEAM),
        "queue_cards": queue_cards(row for row in rows if row.queue.pk in open_ids),
        "rights": [(rule.sentence, _who(rule.roles)) for rule in TABLE.values()],
    }
    return render(request, "web/team/page.html", context, status=status)


def _who(roles: frozenset[SiteRole]) -> dict[str, bool]:
    return {role.value: role in roles for role in SiteRole}
