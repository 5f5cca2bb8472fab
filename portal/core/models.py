"""Leases: who may act as the one leader of something, fenced by an epoch."""

from django.db import models


class Lease(models.Model):
    """One holder at a time. Every change of hands raises the epoch; writes of an older epoch are refused."""

    name = models.CharField(max_length=120, unique=True)
    holder = models.CharField(max_length=200)
    epoch = models.BigIntegerField(default=1)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} held by {self.holder}, epoch {self.epoch}"
