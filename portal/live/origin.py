"""Which pages may open a socket: the portal's own, port included.

A job may serve pages on another port of the same host, and the browser sends the portal's cookie there too.
"""

from urllib.parse import urlsplit

from channels.security.websocket import AllowedHostsOriginValidator, WebsocketDenier
from django.conf import settings

from portal.live.asgi import Application, Receive, Scope, Send


def own_pages_only(application: Application) -> Application:
    """Refuse the handshake unless `Origin` is the address that was asked for, or the site's public one."""
    checked: Application = AllowedHostsOriginValidator(application)
    refuse: Application = WebsocketDenier()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        origin = urlsplit(headers.get(b"origin", "")).netloc.lower()
        own = {headers.get(b"host", "").lower(), urlsplit(settings.BEAMTIME_PUBLIC_URL).netloc.lower()}
        await (checked if origin and origin in own else refuse)(scope, receive, send)

    return guarded
