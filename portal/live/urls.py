"""Addresses of the sockets. Every id is taken as text, so that a malformed one looks like one that does not exist."""

from django.urls import URLPattern, path, re_path

from portal.live.jobs import JobSocket
from portal.live.socket import nothing_here
from portal.live.streams import StreamSocket
from portal.live.teams import TeamSocket

websocket_urlpatterns: list[URLPattern] = [
    path("ws/v1/jobs/<str:key>/", JobSocket.as_asgi()),  # type: ignore[arg-type]
    path("ws/v1/teams/<str:key>/", TeamSocket.as_asgi()),  # type: ignore[arg-type]
    path("ws/v1/streams/<str:key>/", StreamSocket.as_asgi()),  # type: ignore[arg-type]
    re_path(r"", nothing_here),  # type: ignore[arg-type]
]
