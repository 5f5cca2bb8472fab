"""The record of deeds."""

from django.conf import settings
from django.db import models


class Entry(models.Model):
    """One deed: who, what, to what, when, what it was before and after. Never changed, never deleted."""

    at = models.DateTimeField(db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="+",
    )
    # Kept as text, because the person may leave and the record may not change with them.
    actor_name = models.CharField(max_length=150, blank=True)
    action = models.CharField(max_length=80, db_index=True)
    subject_type = models.CharField(max_length=60)
    subject_id = models.CharField(max_length=60)
    subject_name = models.CharField(max_length=300, blank=True)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)

    class Meta:
        indexes = [models.Index(fields=["subject_type", "subject_id"])]
        verbose_name_plural = "entries"

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor_name or 'Beamtime'}: {self.action} {self.subject_name}"
