"""The one way by which a page gets at a team or a job: through what the person may see.

Foreign and missing answer alike (404); known but not allowed answers 403 with a sentence. Every view of this door wears
`signed_in`, `in_team` or `of_job`; tests/doors/test_permissions.py fails for one that has no row in its table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast
from urllib.parse import urlencode

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from portal.core.errors import Forbidden, Missing
from portal.jobs.models import Job
from portal.jobs.policy.rights import may_cancel
from portal.jobs.selectors import job_for
from portal.teams.models import Team, User
from portal.teams.policy import TABLE, Action, SiteRole, may
from portal.teams.selectors import seat_in

TEAM_COOKIE = "bt_team"
COOKIE_AGE = 365 * 86_400

View = Callable[..., HttpResponseBase]


@dataclass(frozen=True, slots=True)
class Seat:
    """A person in front of a team's pages: who, which team, and in which roles."""

    user: User
    team: Team
    roles: frozenset[SiteRole]

    def may(self, action: Action) -> bool:
        """Whether the one table lets this person do it in this team."""
        return may(self.roles, action)

    def demand(self, action: Action) -> None:
        """Raise 403 with a sentence unless the person may do it."""
        if not self.may(action):
            raise PermissionDenied(_refusal(action))

    def may_cancel(self, job: Job) -> bool:
        """One's own job, or any of the team for its leads."""
        return may_cancel(self.roles, user=self.user, job=job)


def person(request: HttpRequest) -> User:
    """The signed-in person of a request that passed `signed_in`."""
    return cast(User, request.user)


def seat_of(request: HttpRequest) -> Seat | None:
    """The seat that `in_team` found for this request, for the frame around the page."""
    return getattr(request, "_beamtime_seat", None)


def signed_in(view: View) -> View:
    """For people who are signed in; answers what the house raises: 404 for `Missing`, 403 for `Forbidden`."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _sign_in(request)
        try:
            return view(request, *args, **kwargs)
        except Missing as missing:
            raise Http404 from missing
        except Forbidden as forbidden:
            raise PermissionDenied(str(forbidden)) from forbidden

    # What is on these pages is for one person; nothing between may keep it, and Back must not show it after sign-out.
    return cast(View, never_cache(guarded))


def in_team(action: Action) -> Callable[[View], View]:
    """The view gets the `Seat` in the team of the address; the person must be allowed to do `action` there."""

    def decorate(view: View) -> View:
        @signed_in
        @wraps(view)
        def guarded(request: HttpRequest, team: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
            seat = _take_seat(request, team)
            seat.demand(action)
            return _remember(request, seat, view(request, seat, *args, **kwargs))

        return guarded

    return decorate


def of_job(action: Action) -> Callable[[View], View]:
    """The view gets seat and job of the address. A job of another team is missing, whoever asks."""

    def decorate(view: View) -> View:
        @in_team(Action.SEE_TEAM)
        @wraps(view)
        def guarded(request: HttpRequest, seat: Seat, job: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
            found = job_for(seat.user, job)
            if found.team_id != seat.team.pk:
                raise Http404
            seat.demand(action)
            return view(request, seat, found, *args, **kwargs)

        return guarded

    return decorate


def _take_seat(request: HttpRequest, slug: str) -> Seat:
    user = person(request)
    found = seat_in(user, slug)
    if found is None:
        raise Http404
    seat = Seat(user, *found)
    request._beamtime_seat = seat  # type: ignore[attr-defined]
    return seat


def _remember(request: HttpRequest, seat: Seat, response: HttpResponseBase) -> HttpResponseBase:
    """Pages outside a team (home, queues) show the team that was looked at last. A cookie, no row."""
    page = request.method == "GET" and response.status_code == 200 and not is_fragment(request)
    if page and request.COOKIES.get(TEAM_COOKIE) != seat.team.slug:
        keep_cookie(response, TEAM_COOKIE, seat.team.slug)
    return response


def keep_cookie(response: HttpResponseBase, name: str, value: str) -> None:
    """A preference of the browser for a year; not readable by other sites, readable by our script (theme)."""
    response.set_cookie(name, value, max_age=COOKIE_AGE, samesite="Lax", secure=settings.BEAMTIME_HTTPS)


def is_fragment(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of a page (a boosted or history request wants the whole)."""
    htmx = getattr(request, "htmx", None)
    return htmx is not None and bool(htmx) and not htmx.boosted and not htmx.history_restore_request


def _sign_in(request: HttpRequest) -> HttpResponse:
    if is_fragment(request):
        return HttpResponse(_("Your session has ended. Sign in again."), status=401, content_type="text/plain")
    # After a form that was sent too late, back to the page that it stood on: its own address may take no GET.
    back = request.get_full_path() if request.method in ("GET", "HEAD") else _referring_page(request)
    return HttpResponseRedirect(f"{resolve_url(settings.LOGIN_URL)}?{urlencode({'next': back})}")


def _referring_page(request: HttpRequest) -> str:
    referrer = request.headers.get("Referer", "")
    safe = url_has_allowed_host_and_scheme(referrer, {request.get_host()}, require_https=request.is_secure())
    return referrer if safe else "/"


def _refusal(action: Action) -> str:
    words = {
        SiteRole.MEMBER: _("members"),
        SiteRole.LEAD: _("leads"),
        SiteRole.ADMIN: _("administrators of the site"),
        SiteRole.AUDITOR: _("auditors"),
    }
    rule = TABLE[action]
    who = ", ".join(word for role, word in words.items() if role in rule.roles)
    return _("This is not open to you: “%(deed)s” is for %(who)s.") % {"deed": rule.sentence.rstrip("."), "who": who}
