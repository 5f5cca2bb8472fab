"""Rows for tests, made through the models with sensible values; every argument may be overridden."""

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from portal.catalog.models import Template, TemplateVersion, VersionState
from portal.clusters.models import BackendKind, Cluster, ResourceFlavor
from portal.clusters.policy import namespace_for, object_name
from portal.clusters.specs import WorkSpec
from portal.core.clock import now
from portal.funds.models import Price, PricedResource
from portal.jobs.models import Attempt, Job, State
from portal.logs.models import Stream
from portal.quotas.models import ClusterQueue, FlavorQuota, LocalQueue
from portal.teams.models import Team, User

_numbers = itertools.count(1)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Site:
    """The rows of a small site."""

    cluster: Cluster
    gpu_flavor: ResourceFlavor
    cpu_flavor: ResourceFlavor
    gpu: ClusterQueue
    cpu: ClusterQueue


def make_user(username: str, **fields: Any) -> User:
    """A person; the password is not usable, tests sign in with `client.force_login`."""
    user = User(username=username, email=f"{username}@example.org", **fields)
    user.set_unusable_password()
    user.save()
    return user


def make_site() -> Site:
    """Cluster `default` (backend local): 4 pretended H100 in queue `gpu`, 8 cores in queue `cpu`; H100 costs 2.40."""
    cluster = Cluster.objects.create(name="default", backend=BackendKind.LOCAL)
    h100 = ResourceFlavor.objects.create(
        cluster=cluster, name="h100", gpu_model="NVIDIA H100", gpu_memory_gib=80, pretended=True
    )
    cpu_only = ResourceFlavor.objects.create(cluster=cluster, name="cpu", gpu_resource="")
    gpu = ClusterQueue.objects.create(cluster=cluster, name="gpu")
    cpu = ClusterQueue.objects.create(cluster=cluster, name="cpu")
    for queue, flavor, resource, nominal in (
        (gpu, h100, "nvidia.com/gpu", 4),
        (gpu, h100, "cpu", 32),
        (gpu, h100, "memory", 256),
        (cpu, cpu_only, "cpu", 8),
        (cpu, cpu_only, "memory", 32),
    ):
        FlavorQuota.objects.create(cluster_queue=queue, flavor=flavor, resource=resource, nominal=nominal)
    make_price(PricedResource.GPU, "2.40", gpu_model="NVIDIA H100")
    return Site(cluster=cluster, gpu_flavor=h100, cpu_flavor=cpu_only, gpu=gpu, cpu=cpu)


def make_price(resource: str, amount: str, *, gpu_model: str = "", valid_from: datetime = LONG_AGO) -> Price:
    return Price.objects.create(
        resource=resource, gpu_model=gpu_model, amount=Decimal(amount), currency="EUR", valid_from=valid_from
    )


def make_version(slug: str = "plain", definition: dict[str, Any] | None = None) -> TemplateVersion:
    """A published version of a template that runs a shell script."""
    template, _ = Template.objects.get_or_create(slug=slug, defaults={"title": slug.title()})
    return TemplateVersion.objects.create(
        template=template,
        number=template.versions.count() + 1,
        state=VersionState.PUBLISHED,
        definition=definition or {},
        published_at=now(),
    )


def make_local_queue(team: Team, cluster_queue: ClusterQueue) -> LocalQueue:
    queue, _ = LocalQueue.objects.get_or_create(team=team, cluster_queue=cluster_queue)
    return queue


def make_job(
    team: Team, user: User, cluster_queue: ClusterQueue, *, state: str = State.SUBMITTED, **fields: Any
) -> Job:
    """A job with its first attempt, as `submit` would leave it, without going through a template's form."""
    work = fields.pop("work", WorkSpec(image="busybox", command=("/bin/sh", "-c", "echo hello")))
    values: dict[str, Any] = {
        "team_name": team.name,
        "submitted_by_name": user.username,
        "name": f"job {next(_numbers)}",
        "work": work.to_json(),
        "submitted_at": now(),
        "template_version": TemplateVersion.objects.filter(template__slug="plain").first() or make_version(),
        **fields,
    }
    job = Job.objects.create(
        team=team, submitted_by=user, queue=make_local_queue(team, cluster_queue), state=state, **values
    )
    Attempt.objects.create(
        job=job,
        number=1,
        state=state,
        namespace=namespace_for(team.slug),
        object_name=object_name(job.id, 1),
        # What still has to be made or taken away is due; the database insists on it.
        due_at=now() if state in (State.SUBMITTED, State.CANCELLING) else None,
    )
    return job


def make_stream(job: Job, **fields: Any) -> Stream:
    """The empty log of a job's first pod."""
    values = {"attempt_number": 1, "pod_uid": f"pod-{next(_numbers)}", "pod_name": "pod", "container": "main", **fields}
    return Stream.objects.create(job=job, **values)
