"""The one verb of the audit."""

from collections.abc import Mapping

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models

from portal.audit.models import Entry
from portal.core.clock import now


def record(
    *,
    actor: AbstractBaseUser | None,
    action: str,
    subject: models.Model,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    """Write down a deed inside the caller's transaction, so that deed and record stand or fall together.

    `actor` is None for what Beamtime does by itself. `before` and `after` hold JSON values and never a secret.
    """
    Entry.objects.create(
        at=now(),
        actor_id=actor.pk if actor is not None else None,
        actor_name=actor.get_username() if actor is not None else "",
        action=action,
        subject_type=subject._meta.label_lower,
        subject_id=str(subject.pk),
        subject_name=str(subject)[:300],
        before=dict(before or {}),
        after=dict(after or {}),
    )
