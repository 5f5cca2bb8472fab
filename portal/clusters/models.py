"""What exists out there: clusters and their ResourceFlavors."""

import re

from django.db import models
from django.utils.translation import gettext_lazy as _


class BackendKind(models.TextChoices):
    KUBE = "kube", _("Kubernetes with Kueue")
    LOCAL = "local", _("This machine")


class Cluster(models.Model):
    """A place where jobs run. How it is reached stands in the settings, never in the database."""

    name = models.SlugField(max_length=40, unique=True)
    backend = models.CharField(max_length=10, choices=BackendKind.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ResourceFlavor(models.Model):
    """Kueue's ResourceFlavor, with what people call the hardware behind it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="flavors")
    name = models.CharField(max_length=63)
    # What prices and charts are keyed by, such as "NVIDIA H100 80GB HBM3"; empty for a flavor without GPUs.
    gpu_model = models.CharField(max_length=80, blank=True)
    gpu_memory_gib = models.PositiveIntegerField(null=True, blank=True)
    gpu_resource = models.CharField(max_length=80, default="nvidia.com/gpu", blank=True)
    # Kubernetes node labels that pods of this flavor are sent to.
    node_labels = models.JSONField(default=dict, blank=True)
    # GPUs that do not exist: the demo's. Said wherever the flavor appears.
    pretended = models.BooleanField(default=False)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="flavor_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def label(self) -> str:
        """What people read: the GPU model, or the flavor's own name; says so when the GPUs are pretended."""
        words = self.gpu_model or self.name
        return f"{words} (pretended)" if self.pretended else words

    @property
    def short_label(self) -> str:
        """ "H100 (pretended)" for "NVIDIA H100 (pretended)": for narrow places; the maker is no news there."""
        return self.label.removeprefix("NVIDIA ")

    @property
    def memory_beside(self) -> int | None:
        """GiB of one GPU, to stand beside its name; None where the name says it already, as in "H100 80GB HBM3"."""
        return None if re.search(r"[0-9] ?Gi?B", self.gpu_model) else self.gpu_memory_gib
