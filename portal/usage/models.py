"""When each pod really occupied which resources."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from portal.jobs.models import Job
from portal.teams.models import Team


class EndSource(models.TextChoices):
    CONTAINERS = "containers", _("the last container's end")
    DELETION = "deletion", _("the pod's deletion")
    INFERRED = "inferred", _("the last time the pod was seen")


class Interval(models.Model):
    """One pod's hold on one resource: from its binding to a node until its last container ended.

    `units`: GPUs, cores or GiB, by `resource` ("nvidia.com/gpu", "cpu", "memory"). Whole seconds, the cluster's times.
    """

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="intervals")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="intervals")
    attempt_number = models.PositiveIntegerField()
    pod_uid = models.CharField(max_length=64)
    pod_name = models.CharField(max_length=253)
    node = models.CharField(max_length=253, blank=True)
    resource = models.CharField(max_length=80)
    units = models.DecimalField(max_digits=12, decimal_places=3)
    flavor = models.CharField(max_length=63, blank=True)
    gpu_model = models.CharField(max_length=80, blank=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    end_source = models.CharField(max_length=12, choices=EndSource.choices, blank=True)
    # The end was inferred, because nobody saw the real one.
    estimated = models.BooleanField(default=False)
    # When the pod was last known to exist, by the portal's clock; the end of a pod that vanished unseen.
    seen_at = models.DateTimeField()
    # Somebody counts with this row from then on (a charge), so that it does not change any more.
    frozen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["started_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["pod_uid", "resource"], name="interval_once"),
            models.CheckConstraint(
                condition=models.Q(ended_at__isnull=True) | models.Q(ended_at__gte=models.F("started_at")),
                name="interval_not_negative",
            ),
        ]
        indexes = [
            models.Index(fields=["team", "started_at"], name="intervals_of_team"),
            models.Index(fields=["started_at"], condition=models.Q(ended_at__isnull=True), name="intervals_open"),
            models.Index(
                fields=["id"],
                condition=models.Q(ended_at__isnull=False, frozen_at__isnull=True),
                name="intervals_to_count",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pod_name} {self.resource} × {self.units.normalize():f}"
