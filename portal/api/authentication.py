"""Who calls, and with which rights: a token, or the session of a signed-in person."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.views import View
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from portal.teams import services as teams
from portal.teams.models import ApiToken, Scope, User

_KEYWORD = b"bearer"


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer <token>`. Never mixed with cookies: where the header is there, only it counts."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != _KEYWORD:
            return None
        if len(words) != 2:
            raise AuthenticationFailed("The header must read: Authorization: Bearer <token>.")
        token = teams.authenticate_token(words[1].decode("latin-1"))
        if token is None:
            raise AuthenticationFailed(
                "This token is not valid: it is mistyped, expired or revoked. Make a new one under API tokens."
            )
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="beamtime"'


class ScopePermission(BasePermission):
    """Signed in; and a token that may only read does only that."""

    message = "This token may only read. Make one that may “read, submit and cancel” under API tokens."

    def has_permission(self, request: Request, view: View) -> bool:
        if isinstance(request.user, AnonymousUser) or not request.user.is_active:
            return False
        if request.method in SAFE_METHODS or not isinstance(request.auth, ApiToken):
            return True
        return bool(request.auth.scope == Scope.WRITE)


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document names the token."""

    target_class = "portal.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
