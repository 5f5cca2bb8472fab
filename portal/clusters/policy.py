"""Names out there, fixed by what they stand for, and which backend a site has."""

import re
from dataclasses import dataclass
from uuid import UUID

from portal.clusters.models import BackendKind

NAMESPACE_PREFIX = "bt-"
_POD = re.compile(r"bt-([0-9a-f]{32})-([1-9]\d{0,8})(?:-(\d{1,9}))?-[a-z0-9]{5}")


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


@dataclass(frozen=True, slots=True)
class AttemptPlace:
    """Of which attempt a pod is, and which of its pods."""

    job_id: UUID
    attempt: int
    index: int


def attempt_of_pod(name: str) -> AttemptPlace | None:
    """What a pod's name says: that of its Job, the index if it has one, and five letters of the cluster's choice."""
    found = _POD.fullmatch(name)
    return None if found is None else AttemptPlace(UUID(hex=found[1]), int(found[2]), int(found[3] or 0))


def backend_for(choice: str, *, kubeconfig: str, service_account: bool) -> BackendKind:
    """The backend that BEAMTIME_CLUSTER_BACKEND means: `auto` takes Kubernetes where there is a way to reach one."""
    if choice == "auto":
        return BackendKind.KUBE if kubeconfig or service_account else BackendKind.LOCAL
    return BackendKind(choice)
