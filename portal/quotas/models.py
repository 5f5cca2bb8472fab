"""ClusterQueues with their quotas, and the LocalQueues by which teams reach them."""

from django.db import models

from portal.clusters.models import Cluster, ResourceFlavor
from portal.teams.models import Team


class ClusterQueue(models.Model):
    """Kueue's ClusterQueue. In a `local` cluster this row is the truth; in Kubernetes it mirrors the object."""

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="cluster_queues")
    name = models.CharField(max_length=63)
    cohort = models.CharField(max_length=63, blank=True)
    stopped = models.BooleanField(default=False)
    open_to_all = models.BooleanField(default=True, help_text="Every team may submit to it.")
    teams = models.ManyToManyField(Team, blank=True, related_name="cluster_queues")
    removed_at = models.DateTimeField(null=True, blank=True)
    observed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="cluster_queue_once")]

    def __str__(self) -> str:
        return self.name


class FlavorQuota(models.Model):
    """How much of one resource in one flavor a ClusterQueue may give. cpu in cores, memory in GiB."""

    cluster_queue = models.ForeignKey(ClusterQueue, on_delete=models.CASCADE, related_name="quotas")
    flavor = models.ForeignKey(ResourceFlavor, on_delete=models.PROTECT, related_name="quotas")
    resource = models.CharField(max_length=80)
    nominal = models.DecimalField(max_digits=14, decimal_places=3)
    borrowing_limit = models.DecimalField(max_digits=14, decimal_places=3, null=True, blank=True)

    class Meta:
        ordering = ["flavor__name", "resource"]
        constraints = [
            models.UniqueConstraint(fields=["cluster_queue", "flavor", "resource"], name="quota_once"),
            models.CheckConstraint(condition=models.Q(nominal__gte=0), name="quota_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_queue} {self.flavor} {self.resource}: {self.nominal.normalize():f}"


class LocalQueue(models.Model):
    """A team's door to a ClusterQueue, of the same name, in the team's namespace."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="local_queues")
    cluster_queue = models.ForeignKey(ClusterQueue, on_delete=models.PROTECT, related_name="local_queues")
    # Set once namespace and LocalQueue were made in the cluster; cleared when they turn out to be missing.
    provisioned_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "cluster_queue"], name="local_queue_once")]

    def __str__(self) -> str:
        return f"{self.team.slug}/{self.cluster_queue.name}"
