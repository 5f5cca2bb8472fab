"""What doors hand in and get back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from portal.clusters.specs import JobSpec
from portal.funds.specs import Estimate
from portal.teams.models import Team, User


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What somebody asks for. The doors build it from a form or from JSON and check nothing.

    `values` are JSON values keyed by parameter, secrets among them, so they appear in no repr. `version` None means
    the newest published one; `name` "" means the template's title; `queue` is a ClusterQueue's name, None or "" leaves
    the choice to Beamtime. The same `idempotency_key` of the same person gives the same job, once.
    """

    team: Team
    user: User
    template: str
    version: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    name: str = ""
    queue: str | None = None
    idempotency_key: str | None = None
    rerun_of: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What `submit` would do. The object's name carries a job id of zeros, because the job does not exist yet."""

    name: str
    template_version: int
    queue: str
    spec: JobSpec
    estimate: Estimate
    # Exactly what would be made in the cluster; secrets by name only.
    manifests: tuple[Mapping[str, Any], ...]
