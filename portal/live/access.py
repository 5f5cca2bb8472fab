"""Who is at the other end of a socket, and may it still listen? Asked at the handshake and again and again.

Everything here reads the database afresh: the user of the handshake never refreshes itself.
"""

from importlib import import_module
from types import SimpleNamespace
from typing import NamedTuple

from django.conf import settings
from django.contrib import auth

from portal.live.asgi import Scope
from portal.teams import services as teams
from portal.teams.models import User


class Credentials(NamedTuple):
    """What the handshake carried: a token's text, or a session's key, or neither."""

    token: str = ""
    session_key: str = ""


def credentials_of(scope: Scope) -> Credentials:
    """From `Authorization: Bearer …`, else from the session cookie. A header that is there but wrong is not passed over
    in favour of the cookie."""
    for name, value in scope.get("headers", ()):
        if name.lower() == b"authorization":
            kind, _, text = value.decode("latin-1").partition(" ")
            return Credentials(token=text.strip() if kind.lower() == "bearer" else "-")
    session = scope.get("session")
    return Credentials(session_key=getattr(session, "session_key", None) or "")


def identify(credentials: Credentials) -> User | None:
    """The person behind the credentials, if they are still good. One to three queries."""
    if credentials.token:
        token = teams.authenticate_token(credentials.token)
        return token.user if token is not None else None
    if not credentials.session_key:
        return None
    session = import_module(settings.SESSION_ENGINE).SessionStore(credentials.session_key)
    user = auth.get_user(SimpleNamespace(session=session))  # type: ignore[arg-type]
    return user if isinstance(user, User) and user.is_active else None
