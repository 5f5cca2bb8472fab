"""What a team spends in a month."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.conf import settings

from portal.costs.services import rate
from portal.jobs.models import Job, State
from portal.teams.models import Team, User
from portal.usage.models import Interval
from portal.web.costs import round_up
from tests.factories import Site, make_job
from tests.web.pages import as_person, elements, queries, words

ADDRESS = "/teams/vision/costs/"
NOON = datetime(2026, 11, 19, 12, 0, tzinfo=ZoneInfo(settings.TIME_ZONE))


def used(job: Job, start: datetime, minutes: float | None, *, gpus: int = 1, model: str = "NVIDIA H100") -> Interval:
    """A hold of GPUs; open when it has no length."""
    return Interval.objects.create(
        job=job,
        team=job.team,
        attempt_number=1,
        pod_uid=f"pod-{Interval.objects.count()}",
        pod_name="pod",
        resource="nvidia.com/gpu",
        units=gpus,
        gpu_model=model,
        flavor="h100",
        seen_at=NOON,
        started_at=start,
        ended_at=None if minutes is None else start + timedelta(minutes=minutes),
    )


@pytest.fixture
def job(site: Site, team: Team, member: User) -> Job:
    return make_job(team, member, site.gpu, state=State.SUCCEEDED, name="llama")


@time_machine.travel(NOON, tick=False)
def test_total_parts_and_jobs(job: Job, member: User) -> None:
    used(job, NOON - timedelta(days=3), 60, gpus=2)
    used(job, NOON - timedelta(days=1), 30)
    rate()
    said = words(as_person(member).get(ADDRESS))
    assert "So far, 1 to 19 Nov, 12:00 €6.00 all of it charged GPU-hours 2.50 allocated, busy or not Jobs 1" in said
    assert "By person member €6.00 100 %" in said
    assert "By template Plain €6.00 100 %" in said
    assert "By resource NVIDIA H100 2.50 GPU-h €6.00 100 %" in said
    assert "llama member 2.50 GPU-h €6.00" in said
    assert "16 Nov €4.80" in said
    assert "18 Nov €1.20" in said


@time_machine.travel(NOON, tick=False)
def test_what_still_runs_is_labelled_provisional(job: Job, member: User) -> None:
    used(job, NOON - timedelta(hours=2), None)
    said = words(as_person(member).get(ADDRESS))
    assert "€4.80 €4.80 of it provisional: still running or not charged yet" in said


@time_machine.travel(datetime(2026, 12, 1, 12, tzinfo=UTC), tick=False)
def test_on_the_first_day_seconds_are_under_a_cent_and_not_free(job: Job, member: User) -> None:
    used(job, datetime(2026, 12, 1, 11, tzinfo=UTC), 0.1)
    said = words(as_person(member).get(ADDRESS))
    assert "So far, 1 Dec until 12:00" in said
    assert "llama member 0.00 GPU-h under €0.01" in said


@time_machine.travel(NOON, tick=False)
def test_no_price_is_named_and_never_zero(job: Job, member: User) -> None:
    used(job, NOON - timedelta(days=1), 60, model="NVIDIA B200")
    rate()
    said = words(as_person(member).get(ADDRESS))
    assert "There is no price for NVIDIA B200." in said
    assert "unknown" in said
    assert "€0.00" not in said
    used(job, NOON - timedelta(days=2), 60)
    rate()
    assert "The total is only a part." in words(as_person(member).get(ADDRESS))


@time_machine.travel(NOON, tick=False)
def test_months_by_address(job: Job, member: User) -> None:
    used(job, NOON - timedelta(days=40), 60)
    rate()
    client = as_person(member)
    assert "Nothing was used in November 2026" in words(client.get(ADDRESS))
    october = client.get(ADDRESS, {"month": "2026-10"})
    assert "October 2026" in words(october)
    assert "The whole month €2.40" in words(october)
    links = [a["href"] for a in elements(october, "a") if a.get("rel") in ("prev", "next")]
    assert links == ["?month=2026-09", "?month=2026-11"]


@time_machine.travel(NOON, tick=False)
@pytest.mark.parametrize("month", ["2027-01", "x", "2026-13", "0000-00", "2026-1", "99999-01", "2026-11-01", "٢٠٢٦-١١"])
def test_a_month_that_is_none_is_this_one(month: str, job: Job, member: User) -> None:
    page = as_person(member).get(ADDRESS, {"month": month})
    assert page.status_code == 200
    assert "November 2026" in words(page)


def test_others_do_not_see_it(job: Job, outsider: User, auditor: User) -> None:
    assert as_person(outsider).get(ADDRESS).status_code == 404
    assert as_person(auditor).get(ADDRESS).status_code == 200


@time_machine.travel(NOON, tick=False)
def test_the_number_of_queries_does_not_grow(job: Job, member: User, site: Site, team: Team) -> None:
    client = as_person(member)
    used(job, NOON - timedelta(days=1), 60)
    rate()
    client.get(ADDRESS)
    first = len(queries(lambda: client.get(ADDRESS)))
    for number in range(10):
        used(make_job(team, member, site.gpu, state=State.SUCCEEDED), NOON - timedelta(days=number), 60)
    rate()
    assert len(queries(lambda: client.get(ADDRESS))) == first
    assert first <= 20


@pytest.mark.parametrize(
    ("amount", "top"),
    [
        ("0", "0"),
        ("0.001", "0.03"),
        ("0.04", "0.06"),
        ("1", "1.2"),
        ("1.3", "1.5"),
        ("200", "300"),
        ("581.09", "600"),
        ("9999", "12000"),
    ],
)
def test_the_scale_ends_at_a_round_number(amount: str, top: str) -> None:
    assert round_up(Decimal(amount)) == Decimal(top)
