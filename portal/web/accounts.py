"""How people get accounts: from an administrator or the institute's sign-on, never by signing up."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class ClosedAccountAdapter(DefaultAccountAdapter):
    """No open registration: who may use GPUs is the site's decision."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False
