"""Running a job again."""

import pytest

from portal.catalog.models import TemplateVersion, VersionState
from portal.core.errors import Forbidden, Refused
from portal.jobs.models import Job
from portal.jobs.selectors import clone_values
from portal.jobs.services import rerun, submit
from portal.teams.models import User
from tests import factories
from tests.jobs.conftest import Ask


@pytest.fixture
def first(ask: Ask) -> Job:
    return submit(ask(name="first light", values={"cores": 2, "script": "echo 'a b' \\ $X"})).job


def test_the_same_values_with_the_same_version(first: Job, member: User, version: TemplateVersion) -> None:
    factories.make_version("shell", {**version.definition, "queue": "gpu"})
    again = rerun(actor=member, job=first)
    assert again.created
    job = again.job
    assert (job.template_version, job.values, job.name, job.queue) == (version, first.values, first.name, first.queue)
    assert Job.objects.get(pk=job.pk).work == Job.objects.get(pk=first.pk).work
    assert job.rerun_of == first


def test_the_newest_version_on_request(first: Job, member: User, version: TemplateVersion) -> None:
    newest = factories.make_version("shell", version.definition)
    assert rerun(actor=member, job=first, newest=True).job.template_version == newest


def test_a_retired_version_says_to_take_the_newest(first: Job, member: User, version: TemplateVersion) -> None:
    factories.make_version("shell", version.definition)
    TemplateVersion.objects.filter(pk=version.pk).update(state=VersionState.RETIRED)
    with pytest.raises(Refused, match="Take version 2"):
        rerun(actor=member, job=first)
    assert rerun(actor=member, job=first, newest=True).created


def test_any_member_may_run_it_again_and_it_is_theirs_then(first: Job, lead: User) -> None:
    job = rerun(actor=lead, job=first).job
    assert (job.submitted_by, job.submitted_by_name) == (lead, "lead")


def test_strangers_run_nothing_again(first: Job, outsider: User, auditor: User) -> None:
    for person in (outsider, auditor):
        with pytest.raises(Forbidden):
            rerun(actor=person, job=first)


def test_the_same_key_gives_the_same_rerun(first: Job, member: User) -> None:
    one = rerun(actor=member, job=first, idempotency_key="again")
    two = rerun(actor=member, job=first, idempotency_key="again")
    assert (one.job, two.created) == (two.job, False)


def test_secrets_are_not_kept_so_they_have_to_be_entered_again(ask: Ask, member: User) -> None:
    job = submit(ask(values={"token": "hf_secret"})).job
    with pytest.raises(Refused, match="It needs HF_TOKEN, which Beamtime does not keep"):
        rerun(actor=member, job=job)


def test_clone_opens_the_form_as_it_was_sent_without_secrets(ask: Ask) -> None:
    job = submit(ask(name="n", values={"token": "hf_secret", "cores": 3})).job
    filled = clone_values(job)
    assert (filled.template, filled.version, filled.name, filled.queue) == ("shell", 1, "n", "cpu")
    assert (filled.values["cores"], filled.secrets) == (3, ("HF_TOKEN",))
    assert "hf_secret" not in repr(filled)
