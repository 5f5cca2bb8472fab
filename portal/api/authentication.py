"""Who calls: a token, or the session of a signed-in person."""

from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import IsAuthenticated


class TokenAuthentication(BaseAuthentication):
    def authenticate(self, request):  # type: ignore[no-untyped-def]
        return None


class ScopePermission(IsAuthenticated):
    pass
