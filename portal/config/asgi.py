"""One ASGI application for pages, API and sockets."""

import gc
import os
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import SessionMiddlewareStack
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

# Loads every application before anything below imports a model.
get_asgi_application()

from portal.config.urls import websocket_urlpatterns  # noqa: E402
from portal.live.events import stream_events, with_events  # noqa: E402
from portal.live.origin import no_foreign_pages, own_pages_only  # noqa: E402
from portal.web.handler import PagesHandler  # noqa: E402
from portal.web.metrics import with_metrics  # noqa: E402

# The type of what an ASGI server calls has several spellings.
pages: Any = PagesHandler()

application = ProtocolTypeRouter(
    {
        "http": with_metrics(with_events(pages, no_foreign_pages(SessionMiddlewareStack(stream_events)))),
        # A page of another site may not open a socket with the reader's cookie. Who it is, `live.access` asks itself.
        "websocket": own_pages_only(SessionMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)

# What is loaded by now stays: to look through it for garbage again and again would hold up an answer now and then.
gc.collect()
gc.freeze()
