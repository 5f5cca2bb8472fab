"""One's own API tokens: made, shown once, revoked."""

from datetime import timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from portal.core.errors import Refused
from portal.teams import services
from portal.teams.selectors import tokens_of
from portal.web.access import person, signed_in
from portal.web.forms import TokenForm, show_problems


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def page(request: HttpRequest) -> HttpResponse:
    """The list and the form. The answer to a POST shows the new token's text, and nothing ever shows it again."""
    form = TokenForm(request.POST or None)
    made, status = None, 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            asked = form.cleaned_data
            try:
                made = services.issue_token(
                    user=person(request),
                    name=asked["name"],
                    scope=asked["scope"],
                    lifetime=timedelta(days=asked["days"]),
                )
            except Refused as refused:
                show_problems(form, refused)
            else:
                form, status = TokenForm(), 201
    context = {
        "form": form,
        "tokens": list(tokens_of(person(request))),
        "made": made[0] if made else None,
        "text": made[1] if made else "",
        "api": request.build_absolute_uri("/api/v1/"),
    }
    return render(request, "web/tokens/page.html", context, status=status)


@require_POST
@signed_in
def revoke(request: HttpRequest, token: int) -> HttpResponse:
    ended = services.revoke_token(user=person(request), token_id=token)
    messages.success(request, _("The token “%(name)s” no longer works.") % {"name": ended.name})
    return redirect("web:tokens")
