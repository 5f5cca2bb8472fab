"""How a person wants the pages: theme and density of rows, kept in cookies because they belong to the screen."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from portal.web.access import keep_cookie, signed_in
from portal.web.context import DENSITY_COOKIE, THEME_COOKIE

# form field -> its cookie, and what the cookie may hold; "" and anything unknown take the cookie away.
_CHOICES = {"theme": (THEME_COOKIE, ("light", "dark")), "density": (DENSITY_COOKIE, ("dense",))}


@require_POST
@signed_in
def save(request: HttpRequest) -> HttpResponse:
    """Keep what was chosen and go back to the page that it was chosen on."""
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, None):
        back = "/"
    response = HttpResponseRedirect(back)
    for name, (cookie, allowed) in _CHOICES.items():
        if name not in request.POST:
            continue
        if request.POST[name] in allowed:
            keep_cookie(response, cookie, request.POST[name])
        else:
            response.delete_cookie(cookie, samesite="Lax")
    return response
