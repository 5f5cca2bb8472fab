"""How people get accounts: from an administrator or the institute's sign-on, never by signing up."""

from typing import ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

_NO_MATCH = _("User name and password do not match. After 5 wrong tries there is a wait of 5 min.")
_WRONG_CODE = _("This code does not fit. It changes every 30 s: type the one that is shown now.")


class ClosedAccountAdapter(DefaultAccountAdapter):
    """No open registration: who may use GPUs is the site's decision."""

    # The numbers are allauth's own rate limit of failed sign-ins (5 in 5 min for one name).
    error_messages: ClassVar[dict[str, str | Promise]] = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": _NO_MATCH,
        "email_password_mismatch": _NO_MATCH,
        "incorrect_password": _("This is not your password. Type the one that you sign in with."),
        "enter_current_password": _("This is not your present password."),
        "too_many_login_attempts": _("Too many wrong tries. Wait 5 min, then sign in again."),
        "account_inactive": _("This account is closed. Ask your team lead or an administrator."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False


class CodeAdapter(DefaultMFAAdapter):
    """The second factor, in the same words as the rest."""

    error_messages: ClassVar[dict[str, str | Promise]] = DefaultMFAAdapter.error_messages | {
        "incorrect_code": _WRONG_CODE
    }
