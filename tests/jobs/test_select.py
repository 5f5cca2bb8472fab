"""Reading jobs: who sees what, lists that stay in order, and what the watcher expects."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.catalog.models import TemplateVersion
from portal.core.clock import now
from portal.core.errors import Missing, Refused
from portal.jobs import selectors
from portal.jobs.models import Attempt, Job, State
from portal.teams.models import Team, User
from tests import factories
from tests.jobs.cluster import ClusterDouble
from tests.jobs.conftest import attempt_of


@pytest.fixture
def jobs(site: factories.Site, team: Team, member: User, lead: User) -> list[Job]:
    """Twelve jobs of vision, newest first; each third failed; two share their moment."""
    moment = now()
    made = []
    for number in range(12):
        person, state = (lead, State.FAILED) if number % 3 == 0 else (member, State.QUEUED)
        at = moment - timedelta(minutes=max(number, 1))
        made.append(factories.make_job(team, person, site.cpu, state=state, name=f"run {number}", submitted_at=at))
    return list(Job.objects.order_by("-submitted_at", "-pk"))


# --- one job -----------------------------------------------------------------------------------------------------


def test_members_admin_and_auditor_see_a_job(job: Job, member: User, admin_user: User, auditor: User) -> None:
    for person in (member, admin_user, auditor):
        assert selectors.job_for(person, job.id) == job
        assert selectors.job_for(person, str(job.id)) == job


@pytest.mark.parametrize("job_id", ["", "1", "0" * 32 + "0", "../etc/passwd", "\0", "no-uuid", "٣" * 32])
def test_a_malformed_id_is_missing(db: None, admin_user: User, job_id: str) -> None:
    with pytest.raises(Missing):
        selectors.job_for(admin_user, job_id)


def test_foreign_and_unknown_look_the_same(job: Job, outsider: User) -> None:
    said = []
    for job_id in (job.id, uuid4()):
        with pytest.raises(Missing) as caught:
            selectors.job_for(outsider, job_id)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_who_was_made_inactive_sees_nothing(job: Job, member: User) -> None:
    member.is_active = False
    with pytest.raises(Missing):
        selectors.job_for(member, job.id)


# --- lists -------------------------------------------------------------------------------------------------------


def test_pages_go_through_all_jobs_in_order_and_back(jobs: list[Job], member: User) -> None:
    found, cursor = [], ""
    while True:
        page = selectors.page(selectors.jobs_of(member), cursor=cursor, limit=5)
        found.append(list(page.jobs))
        if page.older is None:
            break
        cursor = page.older
    assert [job for part in found for job in part] == jobs
    assert [len(part) for part in found] == [5, 5, 2]
    newer = selectors.page(selectors.jobs_of(member), cursor=page.newer or "", limit=5)
    assert list(newer.jobs) == found[1]
    newest = selectors.page(selectors.jobs_of(member), cursor=newer.newer or "", limit=5)
    assert (list(newest.jobs), newest.newer) == (found[0], None)


def test_a_new_job_shifts_no_page(jobs: list[Job], site: factories.Site, team: Team, member: User) -> None:
    first = selectors.page(selectors.jobs_of(member), limit=5)
    factories.make_job(team, member, site.cpu)
    second = selectors.page(selectors.jobs_of(member), cursor=first.older or "", limit=5)
    assert list(second.jobs) == jobs[5:10]


def test_filters_narrow_and_counts_come_from_the_same_rows(jobs: list[Job], member: User, lead: User) -> None:
    assert len(selectors.jobs_of(member, states=[State.FAILED])) == 4
    assert len(selectors.jobs_of(lead, mine=True)) == 4
    assert [job.name for job in selectors.jobs_of(member, search="RUN 11")] == ["run 11"]
    counted = selectors.counts(selectors.jobs_of(member))
    assert (counted[State.FAILED], counted[State.QUEUED], counted[State.LOST]) == (4, 8, 0)
    assert sum(counted.values()) == len(jobs)


def test_a_team_sees_its_own_jobs_only(jobs: list[Job], outsider: User, auditor: User, other_team: Team) -> None:
    assert not selectors.jobs_of(outsider).exists()
    assert not selectors.jobs_of(outsider, team=jobs[0].team).exists()
    assert selectors.jobs_of(auditor).count() == 12
    assert not selectors.jobs_of(auditor, team=other_team).exists()


@pytest.mark.parametrize("cursor", ["x", "o", "oxyz-1", "o1-zz", "nffffffffffffffffffff-" + "0" * 32, "o-", "\0"])
def test_a_cursor_that_is_none_is_refused(jobs: list[Job], member: User, cursor: str) -> None:
    with pytest.raises(Refused):
        selectors.page(selectors.jobs_of(member), cursor=cursor)


def test_a_page_is_one_question_however_many_rows(jobs: list[Job], member: User) -> None:
    for limit in (1, 10):
        with CaptureQueriesContext(connection) as caught:
            for job in selectors.page(selectors.jobs_of(member), limit=limit).jobs:
                _ = (job.team.slug, job.template_version.template.title, job.queue.cluster_queue.name, job.reason)
        assert len(caught) == 1
        assert '"jobs_job"."work"' not in caught[0]["sql"], "a script of 100 kB stays where it is"


def test_counts_are_one_question(jobs: list[Job], member: User) -> None:
    with CaptureQueriesContext(connection) as caught:
        selectors.counts(selectors.jobs_of(member))
    assert len(caught) == 1


# --- before and after a job ---------------------------------------------------------------------------------------


def test_a_form_offers_what_is_open_to_the_team(site: factories.Site, team: Team) -> None:
    offer = selectors.offer_for(team)
    assert offer.queues == ("cpu", "gpu")
    assert [(flavor.name, flavor.most, flavor.pretended) for flavor in offer.flavors] == [("h100", 4, True)]
    assert selectors.offer_for(team, queue="cpu").flavors == ()
    assert selectors.offer_for(team, queue="gpu").flavors == offer.flavors


def test_the_schema_of_values_names_the_flavors(version: TemplateVersion, team: Team) -> None:
    assert "h100" in str(selectors.values_schema(team, version))


def test_the_manifest_of_a_job_is_what_was_made(cluster: ClusterDouble, job: Job) -> None:
    (manifest,) = selectors.manifests_of(job)
    assert manifest["metadata"]["name"] == attempt_of(job).object_name


def test_attempts_and_events_of_a_job(job: Job) -> None:
    assert [attempt.number for attempt in selectors.attempts_of(job)] == [1]
    assert selectors.events_of(job) == []


# --- the watcher ---------------------------------------------------------------------------------------------------


def test_expected_are_the_objects_that_were_made_and_should_still_be_there(
    site: factories.Site, team: Team, member: User
) -> None:
    for state in State:
        made = factories.make_job(team, member, site.cpu, state=state, name=str(state))
        Attempt.objects.filter(job=made).update(object_uid=f"uid-{state}")
    Attempt.objects.filter(job__name="queued").update(object_uid="")
    with CaptureQueriesContext(connection) as caught:
        expected = selectors.expected_objects("default")
    assert len(caught) == 1
    names = {Job.objects.get(pk=job_id).name for job_id, _ in expected.values()}
    assert names == {"starting", "running", "cancelling"}
    assert all(name.startswith("bt-vision/bt-") for name in expected)
    assert selectors.expected_objects("elsewhere") == {}


def test_who_waits_is_counted_in_each_queue_by_itself(site: factories.Site, team: Team, member: User) -> None:
    for _ in range(3):
        factories.make_job(team, member, site.cpu, state=State.QUEUED)
    mine = factories.make_job(team, member, site.gpu, state=State.QUEUED)
    assert [attempt.job_id for attempt in selectors.waiting(2, queue_id=site.gpu.pk)] == [mine.pk]
    assert len(selectors.waiting(2)) == 2


def test_a_search_finds_names_people_and_ids(jobs: list[Job], member: User) -> None:
    job = jobs[0]
    assert job in selectors.jobs_of(member, search=str(job.pk))
    assert set(selectors.jobs_of(member, search=job.submitted_by_name.upper())) >= {job}
    assert not selectors.jobs_of(member, template="no-such-template").exists()
