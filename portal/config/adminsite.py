"""The admin's index: what administrators come for first, what belongs to libraries last."""

# mypy: disable-error-code="type-arg"

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest  # noqa: TID251 - the admin is a page

# The rooms that administrators edit, in the order of setting up a site; then those that they look into.
ORDER = ("teams", "clusters", "quotas", "catalog", "funds", "logs", "jobs", "audit")
# Nothing in them is decided here: accounts have one address, and nobody signs in by another site's account yet.
LEFT_OUT = frozenset({"account", "socialaccount"})


class Site(AdminSite):
    """Django's own, with another order."""

    site_header = site_title = "Beamtime administration"

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        apps = super().get_app_list(request, app_label)
        shown = [app for app in apps if app["app_label"] not in LEFT_OUT]
        return sorted(shown, key=lambda app: ORDER.index(app["app_label"]) if app["app_label"] in ORDER else len(ORDER))
