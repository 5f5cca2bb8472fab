"""What the stories about jobs share: a cluster in memory, and a template whose job is a shell script."""

from typing import Any

import pytest

from portal.catalog.models import TemplateVersion
from portal.clusters import gateway
from portal.jobs.models import Attempt, Job, State
from portal.jobs.specs import JobRequest
from portal.teams.models import Team, User
from tests import factories
from tests.jobs.cluster import ClusterDouble
from tests.jobs.facts import Told

SCRIPT: dict[str, Any] = {
    "parameters": [
        {"name": "script", "kind": "script", "label": "Script"},
        {"name": "gpu", "kind": "gpu", "label": "GPUs", "default": {"flavor": "", "count": 0}, "required": False},
        {"name": "cores", "kind": "number", "label": "Cores", "default": 1, "min": 0.1, "max": 1000},
        {"name": "memory", "kind": "memory", "label": "Memory", "default": 1024},
        {"name": "limit", "kind": "duration", "label": "Time limit", "default": 3600},
        {"name": "runs", "kind": "runs", "label": "Runs", "default": 1, "max": 1000},
        {"name": "token", "kind": "secret", "label": "Token", "variable": "HF_TOKEN", "required": False},
    ],
    "queue": "cpu",
    "work": {
        "image": "busybox:1.37",
        "command": ["/bin/sh", "-c", {"from": "script"}],
        "cpu": {"from": "cores"},
        "memory": {"from": "memory"},
        "gpus": {"from": "gpu"},
        "runs": {"from": "runs"},
        "time_limit": {"from": "limit"},
    },
}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ClusterDouble:
    """The cluster behind the gateway is the one in memory."""
    double = ClusterDouble()
    monkeypatch.setattr(gateway, "_backend", lambda name, kind: double)
    return double


@pytest.fixture
def version(site: factories.Site) -> TemplateVersion:
    """Version 1 of the template `shell`, published."""
    return factories.make_version("shell", SCRIPT)


@pytest.fixture
def ask(team: Team, member: User, version: TemplateVersion) -> "Ask":
    return Ask(team, member)


class Ask:
    """Requests of one person, with a script that says hello."""

    def __init__(self, team: Team, user: User) -> None:
        self.team, self.user = team, user

    def __call__(self, *, values: dict[str, Any] | None = None, **fields: Any) -> JobRequest:
        filled = {"script": "echo hello", **(values or {})}
        return JobRequest(**{"team": self.team, "user": self.user, "template": "shell", "values": filled, **fields})


@pytest.fixture
def job(site: factories.Site, team: Team, member: User) -> Job:
    """A job of `member` in queue gpu, in the queue of the cluster."""
    made = factories.make_job(team, member, site.gpu, state=State.QUEUED, gpu_model="NVIDIA H100")
    made.attempts.update(object_uid=f"uid-{made.attempts.get().object_name}")
    return made


@pytest.fixture
def told(job: Job) -> Told:
    """What the cluster says about `job`; its Job exists."""
    return told_of(job)


def told_of(job: Job) -> Told:
    attempt = job.attempts.get()
    story = Told(name=attempt.object_name, namespace=attempt.namespace, job_id=str(job.id))
    story.created()
    return story


def attempt_of(job: Job) -> Attempt:
    """The attempt as it is in the database now."""
    return Attempt.objects.get(job=job)
