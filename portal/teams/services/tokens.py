"""Keys of programs to one person's rights. Only a digest is kept; the text is shown once."""

import hashlib
import hmac
import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from portal.audit import services as audit
from portal.core.clock import now
from portal.core.errors import Missing, Problem, Refused
from portal.teams.models import ApiToken, Scope, User
from portal.teams.services.common import demand_admin, rights_changed

TOKEN_MARK = "bt_"  # noqa: S105 - what every token begins with, not one
PREFIX_LENGTH = 9
LONGEST_LIFETIME = timedelta(days=366)
MOST_TOKENS = 50
# A busy program must not turn every request into a write.
LAST_USED_STEP = timedelta(minutes=1)


@transaction.atomic
def issue_token(*, user: User, name: str, scope: str, lifetime: timedelta) -> tuple[ApiToken, str]:
    """A token for one's own programs, and its text, which is kept nowhere.

    Raises `Refused` on "name", "scope", "lifetime", or "" (inactive person, too many tokens).
    """
    name = name.strip()
    problems = []
    if not 1 <= len(name) <= 80:
        problems.append(Problem("name", "Name the token with 1 to 80 characters, so that you know it again."))
    if scope not in Scope.values:
        problems.append(Problem("scope", "Choose read, or read and write."))
    if not timedelta(minutes=1) <= lifetime <= LONGEST_LIFETIME:
        problems.append(Problem("lifetime", "A token lives from 1 minute to 366 days. Choose a time in between."))
    if not user.is_active:
        problems.append(Problem("", "This account is not active, so it can have no tokens.", "inactive"))
    elif ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=now()).count() >= MOST_TOKENS:
        problems.append(Problem("", f"You have {MOST_TOKENS} tokens, which is the most. Revoke one first.", "limit"))
    if problems:
        raise Refused(problems)
    text = TOKEN_MARK + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=text[:PREFIX_LENGTH],
        digest=_digest(text),
        scope=scope,
        expires_at=now() + lifetime,
    )
    after = {"scope": scope, "expires_at": token.expires_at.isoformat()}
    audit.record(actor=user, action="token.issue", subject=token, after=after)
    return token, text


@transaction.atomic
def revoke_token(*, user: User, token_id: int) -> ApiToken:
    """End one of one's own tokens at once. Idempotent. Raises `Missing` for another person's or no token."""
    token = ApiToken.objects.filter(user=user, pk=token_id).first()
    if token is None:
        raise Missing("no such token")
    return _revoke(actor=user, token=token)


@transaction.atomic
def revoke_token_as_admin(*, actor: User, token: ApiToken) -> ApiToken:
    """End anybody's token at once. Idempotent. Raises `Forbidden`."""
    demand_admin(actor, "Only an administrator of the site revokes other people's tokens.")
    return _revoke(actor=actor, token=token)


def authenticate_token(text: str) -> ApiToken | None:
    """The token with this text, its person loaded; None if it is unknown, expired, revoked or its person inactive."""
    if not text.startswith(TOKEN_MARK) or len(text) > 200:
        return None
    digest, moment = _digest(text), now()
    token = ApiToken.objects.select_related("user").filter(digest=digest).first()
    # The index has looked at the digest already; the comparison in constant time is for whoever measures that.
    if token is None or not hmac.compare_digest(token.digest, digest):
        return None
    if token.revoked_at is not None or token.expires_at <= moment or not token.user.is_active:
        return None
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lte=moment - LAST_USED_STEP)
    if token.last_used_at is None or token.last_used_at <= moment - LAST_USED_STEP:
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=moment)
    return token


def _revoke(*, actor: User, token: ApiToken) -> ApiToken:
    if token.revoked_at is None:
        token.revoked_at = now()
        token.save(update_fields=["revoked_at"])
        audit.record(actor=actor, action="token.revoke", subject=token, after={"owner": token.user.get_username()})
        rights_changed(token.user)
    return token


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
