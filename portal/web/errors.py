"""The pages for what went wrong. The page for error 500 asks nothing of the database, which may be what failed."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from portal.web.access import is_fragment


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig):
        return _page(
            request,
            413,
            _("That was too large"),
            _("What was sent is larger than 4 MiB and was not read. Go back, shorten it, and send it again."),
        )
    return _page(request, 400, _("That could not be read"), _("Go back, load the page again, and send it once more."))


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    said = str(exception) if exception and exception.args else _("This is not open to you.")
    return _page(request, 403, _("Not open to you"), said)


def missing(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _page(
        request,
        404,
        _("Nothing here"),
        _("There is no such page, or it is not open to you. Check the address, or ask somebody of the team."),
    )


def broken(request: HttpRequest) -> HttpResponse:
    if request.path.startswith("/api/"):
        said = _("The fault is written down on the server. Ask for the thing's state before you repeat this.")
        body = {"type": "about:blank", "title": _("The server failed"), "status": 500, "detail": said}
        return JsonResponse(body, status=500, content_type="application/problem+json")
    return _page(
        request,
        500,
        _("This page failed"),
        _("The fault is written down on the server. Nothing of yours was changed by this page; load it again."),
    )


def no_csrf(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without its token: an old tab, cookies that are off, or another site that tries."""
    return _page(
        request,
        403,
        _("This form is out of date"),
        _("Nothing was changed. Go back, load the page again, and send the form once more; cookies must be allowed."),
    )


def _page(request: HttpRequest, status: int, title: str, text: str) -> HttpResponse:
    if is_fragment(request):
        return HttpResponse(text, status=status, content_type="text/plain; charset=utf-8")
    # Without the request: its context processors would read the database.
    page = render_to_string("web/error.html", {"title": title, "text": text, "status": status})
    return HttpResponse(page, status=status)
