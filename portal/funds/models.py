"""Prices with dates of validity."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class PricedResource(models.TextChoices):
    GPU = "gpu", _("GPU-hour")
    CPU = "cpu", _("core-hour")
    MEMORY = "memory", _("GiB-hour")


class Price(models.Model):
    """What one unit costs for one hour, from a moment on. A newer price ends the older; none is ever edited."""

    resource = models.CharField(max_length=10, choices=PricedResource.choices)
    gpu_model = models.CharField(max_length=80, blank=True)
    amount = models.DecimalField(max_digits=18, decimal_places=10)
    currency = models.CharField(max_length=3)
    valid_from = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["resource", "gpu_model", "-valid_from"]
        constraints = [
            models.UniqueConstraint(fields=["resource", "gpu_model", "valid_from"], name="price_once"),
            models.CheckConstraint(condition=models.Q(amount__gte=0), name="price_not_negative"),
            models.CheckConstraint(
                condition=(models.Q(resource="gpu") & ~models.Q(gpu_model=""))
                | (~models.Q(resource="gpu") & models.Q(gpu_model="")),
                name="price_of_gpu_names_a_model",
            ),
        ]

    def __str__(self) -> str:
        what = self.gpu_model or self.resource
        return f"{what}: {self.amount.normalize():f} {self.currency} from {self.valid_from:%Y-%m-%d}"
