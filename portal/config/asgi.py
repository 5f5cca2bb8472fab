"""One ASGI application for pages, API and sockets."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import SessionMiddlewareStack
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

# Loads every application before anything below imports a model.
django_application = get_asgi_application()

from portal.config.urls import websocket_urlpatterns  # noqa: E402
from portal.live.origin import own_pages_only  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": django_application,
        # A page of another site may not open a socket with the reader's cookie. Who it is, `live.access` asks itself.
        "websocket": own_pages_only(SessionMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
