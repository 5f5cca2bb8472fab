"""The story of a job is told in the order in which it happened, although two clocks of different grain tell it."""

from datetime import datetime

from portal.clusters.specs import AttemptFacts, JobFacts
from portal.jobs import selectors, services
from portal.jobs.models import Event, Job
from portal.teams.models import Team, User
from tests import factories


def test_a_job_is_submitted_before_it_is_queued_although_kubernetes_drops_the_fraction_of_the_second(
    site: factories.Site, team: Team, member: User
) -> None:
    job = factories.make_job(team, member, site.cpu)
    submitted_at = datetime.fromisoformat("2026-03-02T10:00:05.600+00:00")
    Event.objects.create(job=job, at=submitted_at, source="beamtime", kind="submitted", key="submitted")

    services.observe(_seen(job, created_at=submitted_at.replace(microsecond=0)))

    assert [event.kind for event in selectors.events_of(job)] == ["submitted", "queued"]


def _seen(job: Job, *, created_at: datetime) -> AttemptFacts:
    attempt = job.attempts.get()
    return AttemptFacts(
        cluster="default",
        namespace=attempt.namespace,
        name=attempt.object_name,
        job_id=str(job.pk),
        attempt=1,
        job=JobFacts(uid="uid", name=attempt.object_name, created_at=created_at),
    )
