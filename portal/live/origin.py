"""Which pages may open a socket: the portal's own, port included.

A job may serve pages on another port of the same host, and the browser sends the portal's cookie there too.
"""

from urllib.parse import urlsplit

from channels.security.websocket import AllowedHostsOriginValidator, WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from portal.live.asgi import Application, Receive, Scope, Send


def own_pages_only(application: Application) -> Application:
    """Refuse the handshake unless `Origin` is the address that was asked for, or the site's public one."""
    checked: Application = AllowedHostsOriginValidator(application)
    refuse: Application = WebsocketDenier()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        await (checked if _is_own(_headers(scope)) else refuse)(scope, receive, send)

    return guarded


def no_foreign_pages(application: Application) -> Application:
    """The same for events over HTTP, where a browser names the origin only of a page that is not of the same one.

    A program names none and shows a token. An answer that goes to a foreign page could not be read there anyway.
    """

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope)
        foreign = headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none")
        if foreign or (b"origin" in headers and not _is_own(headers)) or not _is_known(headers):
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"Not from another site."})
            return
        await application(scope, receive, send)

    return guarded


def _headers(scope: Scope) -> dict[bytes, str]:
    return {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _is_own(headers: dict[bytes, str]) -> bool:
    origin = urlsplit(headers.get(b"origin", "")).netloc.lower()
    own = {headers.get(b"host", "").lower(), urlsplit(settings.BEAMTIME_PUBLIC_URL).netloc.lower()}
    return bool(origin) and origin in own


def _is_known(headers: dict[bytes, str]) -> bool:
    """Whether the host that was asked for is one of this site's."""
    host = split_domain_port(headers.get(b"host", ""))[0]
    allowed = settings.ALLOWED_HOSTS or ([".localhost", "127.0.0.1", "[::1]"] if settings.DEBUG else [])
    return bool(host) and validate_host(host, allowed)
