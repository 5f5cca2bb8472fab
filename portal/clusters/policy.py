"""Names out there, fixed by what they stand for, and which backend a site has."""

from uuid import UUID

from portal.clusters.models import BackendKind

NAMESPACE_PREFIX = "bt-"


def namespace_for(team_slug: str) -> str:
    """The team's namespace; an RFC 1123 label because a team's slug is one of at most 40 characters."""
    return f"{NAMESPACE_PREFIX}{team_slug}"


def watch_lease(cluster: str) -> str:
    """Name of the lease that whoever watches a cluster holds."""
    return f"watch:{cluster}"


def object_name(job_id: UUID, attempt: int) -> str:
    """Name of an attempt's Job: fixed by job id and attempt, so that creating it twice is impossible.

    35 characters at attempt 1; below 63 for every attempt, which leaves room for the pod's index and suffix.
    """
    return f"bt-{job_id.hex}-{attempt}"


def backend_for(choice: str, *, kubeconfig: str, service_account: bool) -> BackendKind:
    """The backend that BEAMTIME_CLUSTER_BACKEND means: `auto` takes Kubernetes where there is a way to reach one."""
    if choice == "auto":
        return BackendKind.KUBE if kubeconfig or service_account else BackendKind.LOCAL
    return BackendKind(choice)
