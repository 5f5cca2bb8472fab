"""Every address of the portal, sockets included."""

from django.contrib import admin
from django.urls import include, path

from portal.live.urls import websocket_urlpatterns

__all__ = ["urlpatterns", "websocket_urlpatterns"]

urlpatterns = [
    path("", include("portal.web.urls")),
    path("api/v1/", include("portal.api.urls")),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
]
