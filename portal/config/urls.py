"""Every address of the portal, sockets included."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path

from portal.live.urls import websocket_urlpatterns

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns", "websocket_urlpatterns"]

# The admin has no door of its own: its sign-in is the one with the second factor.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

handler400 = "portal.web.errors.bad_request"
handler403 = "portal.web.errors.forbidden"
handler404 = "portal.web.errors.missing"
handler500 = "portal.web.errors.broken"

urlpatterns = [
    path("", include("portal.web.urls")),
    path("api/v1/", include("portal.api.urls")),
    path("ingest/v1/", include("portal.ingest.urls")),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
]
