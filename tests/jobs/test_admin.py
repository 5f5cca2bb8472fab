"""An administrator looks at jobs and changes nothing."""

import pytest
from django.test import Client

from portal.jobs.models import Job, Pod
from portal.teams.models import User


@pytest.fixture
def desk(client: Client, admin_user: User) -> Client:
    client.force_login(admin_user)
    return client


def test_jobs_are_listed_and_shown(desk: Client, job: Job) -> None:
    assert job.name in desk.get("/admin/jobs/job/").content.decode()
    shown = desk.get(f"/admin/jobs/job/{job.pk}/change/").content.decode()
    assert job.attempts.get().object_name in shown


def test_nothing_can_be_changed_added_or_deleted(desk: Client, job: Job) -> None:
    assert desk.post(f"/admin/jobs/job/{job.pk}/change/", {"name": "other"}).status_code == 403
    assert desk.get("/admin/jobs/job/add/").status_code == 403
    assert desk.post(f"/admin/jobs/job/{job.pk}/delete/", {"post": "yes"}).status_code == 403
    job.refresh_from_db()
    assert job.name != "other"


def test_pods_are_shown_too(desk: Client, job: Job) -> None:
    pod = Pod.objects.create(attempt=job.attempts.get(), uid="u", name="pod-1", phase="Running")
    assert "pod-1" in desk.get("/admin/jobs/pod/").content.decode()
    assert desk.get(f"/admin/jobs/pod/{pod.pk}/change/").status_code == 200


def test_members_do_not_get_in(client: Client, member: User, job: Job) -> None:
    client.force_login(member)
    assert client.get("/admin/jobs/job/").status_code in (302, 403)
