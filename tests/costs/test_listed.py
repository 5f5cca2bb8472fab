"""The costs that stand in lists are those of the jobs' own pages."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core.clock import now
from portal.costs.selectors import costs_of, job_cost
from portal.costs.services import rate
from portal.jobs.models import Job, State
from portal.teams.models import Team, User
from portal.usage.models import Interval
from tests.factories import Site, make_job, make_price

START = now().replace(microsecond=0) - timedelta(days=1)


def hold(job: Job, seconds: int | None, *, units: str = "1", resource: str = "nvidia.com/gpu", model: str = "") -> None:
    is_gpu = resource == "nvidia.com/gpu"
    Interval.objects.create(
        job=job,
        team=job.team,
        attempt_number=1,
        pod_uid=f"pod-{Interval.objects.count()}",
        pod_name="pod",
        resource=resource,
        units=Decimal(units),
        gpu_model=(model or "NVIDIA H100") if is_gpu else "",
        seen_at=START,
        started_at=START,
        ended_at=None if seconds is None else START + timedelta(seconds=seconds),
    )


@pytest.fixture
def jobs(site: Site, team: Team, member: User) -> list[Job]:
    make_price("cpu", "0.013")
    found = [make_job(team, member, site.gpu, state=State.SUCCEEDED) for _ in range(6)]
    charged, running, unpriced, partly, nothing, new = found
    for _ in range(7):
        hold(charged, 901, units="0.3", resource="cpu")
    hold(charged, 3601, units="3")
    hold(running, None)
    hold(unpriced, 60, model="NVIDIA B200")
    hold(partly, 60, model="NVIDIA B200")
    hold(partly, 60)
    rate()
    hold(running, 10, resource="memory", units="2")
    hold(new, 0)
    assert nothing
    return found


def test_each_amount_is_the_one_of_the_jobs_page(jobs: list[Job]) -> None:
    moment = now()
    listed = costs_of([job.pk for job in jobs], moment)
    for job in jobs[:4]:
        page = job_cost(job, moment)
        assert listed[job.pk].amount == page.amount
    charged, running, unpriced, partly, nothing, new = jobs
    assert nothing.pk not in listed
    assert listed[unpriced.pk].amount is None
    assert listed[partly.pk].amount == Decimal("0.04")
    assert [listed[job.pk].provisional for job in (charged, running, new)] == [False, True, True]


def test_the_number_of_queries_is_fixed(jobs: list[Job]) -> None:
    with CaptureQueriesContext(connection) as captured:
        costs_of([job.pk for job in jobs], now())
    assert len(captured) <= 4


def test_less_than_a_cent_says_so_in_the_list_and_on_the_page(site: Site, team: Team, member: User) -> None:
    make_price("cpu", "0.013")
    little, much = (make_job(team, member, site.gpu, state=State.SUCCEEDED) for _ in range(2))
    hold(little, 2, resource="cpu")
    hold(much, 3600, resource="cpu")
    rate()
    listed = costs_of([little.pk, much.pk], now())
    assert (listed[little.pk].under_a_cent, listed[much.pk].under_a_cent) == (True, False)
    assert (job_cost(little, now()).under_a_cent, job_cost(much, now()).under_a_cent) == (True, False)
