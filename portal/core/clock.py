"""The portal's own clock. Job, pod and usage times never come from here: those are the cluster's."""

from datetime import datetime

from django.utils import timezone


def now() -> datetime:
    """The present moment, aware, in UTC."""
    return timezone.now()
