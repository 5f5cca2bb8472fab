"""The admin's index: what administrators come for first, what belongs to libraries last. And how much it is asked."""

# mypy: disable-error-code="type-arg"

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect  # noqa: TID251 - the admin is a page
from django.utils.translation import gettext as _

# The rooms that administrators edit, in the order of setting up a site; then those that they look into.
ORDER = ("teams", "clusters", "quotas", "catalog", "funds", "logs", "jobs", "audit")
# Nothing in them is decided here: accounts have one address, and nobody signs in by another site's account yet.
LEFT_OUT = frozenset({"account", "socialaccount"})
# Of what is looked for or filtered by. SQLite fails on a pattern of 50,000 bytes, and on a thousand words at once.
LONGEST = 200

View = Callable[..., HttpResponseBase]


class Site(AdminSite):
    """Django's own, with another order, and deaf to what is too long to be looked for."""

    site_header = site_title = "Beamtime administration"

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        apps = super().get_app_list(request, app_label)
        shown = [app for app in apps if app["app_label"] not in LEFT_OUT]
        return sorted(shown, key=lambda app: ORDER.index(app["app_label"]) if app["app_label"] in ORDER else len(ORDER))

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Every page of the admin goes through here: lists, and what the fields of forms look up."""
        return super().admin_view(_bounded(view), cacheable)


def _bounded(view: View) -> View:
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        kept = request.GET.copy()
        # Django's own notes to itself begin with "_" and are looked for nowhere.
        for name, values in request.GET.lists():
            if not name.startswith("_") and max(map(len, values), default=0) > LONGEST:
                del kept[name]
        if len(kept) == len(request.GET):
            return view(request, *args, **kwargs)
        said = _("At most %(most)d characters can be looked for. What was longer has been left out.")
        messages.warning(request, said % {"most": LONGEST})
        return HttpResponseRedirect(f"{request.path}?{kept.urlencode()}")

    return answer
