"""Verbs about clusters."""

from pathlib import Path

from django.conf import settings

from portal.clusters.models import Cluster
from portal.clusters.policy import backend_for

# Where Kubernetes puts a pod's own token.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def ensure_cluster() -> Cluster:
    """The row of the cluster that the settings name, with the backend that they give it. Idempotent.

    How it is reached stays in the settings. A cluster that changes its backend keeps its jobs; those that ran in the
    old place are found missing in the new one and end as lost.
    """
    backend = backend_for(
        settings.BEAMTIME_CLUSTER_BACKEND,
        kubeconfig=settings.BEAMTIME_CLUSTER_KUBECONFIG,
        service_account=SERVICE_ACCOUNT.exists(),
    )
    cluster, _ = Cluster.objects.update_or_create(
        name=settings.BEAMTIME_CLUSTER_NAME, defaults={"backend": backend.value}
    )
    return cluster
