"""Secrets at rest: encrypted with keys from the settings, the first of which encrypts, all of which decrypt."""

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from portal.core.errors import BeamtimeError


class SecretUnreadable(BeamtimeError):
    """No key in BEAMTIME_SECRETS_KEYS opens this secret: a key was removed before its secrets were gone."""


def seal(plain: str) -> bytes:
    """Ciphertext of a secret text."""
    return _keys().encrypt(plain.encode())


def open_sealed(sealed: bytes) -> str:
    """The secret text again. Raises `SecretUnreadable` when no configured key fits."""
    try:
        return _keys().decrypt(bytes(sealed)).decode()
    except InvalidToken as error:
        raise SecretUnreadable("the secret was sealed with a key that the settings no longer name") from error


def _keys() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.BEAMTIME_SECRETS_KEYS])
