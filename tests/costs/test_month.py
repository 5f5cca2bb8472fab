"""What a team used in a month: every second once, every breakdown the same sum."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pytest_django import Settings

from portal.costs import services
from portal.costs.selectors import team_month
from portal.funds.models import PricedResource
from portal.jobs.models import Job, State
from portal.teams.models import Team, User
from tests import factories
from tests.costs.factory import NOON, at, hold

NOVEMBER, DECEMBER = date(2026, 11, 15), date(2026, 12, 1)


def test_a_month_of_a_team(job: Job, team: Team, lead: User, site: factories.Site) -> None:
    other = factories.make_job(team, lead, site.gpu, state=State.SUCCEEDED, name="other")
    hold(job, NOON, 900)
    hold(other, NOON, 2000, units=Decimal(2))
    services.rate()
    month = team_month(team, NOVEMBER, at(90_000))
    assert (month.total, month.provisional, month.missing) == (Decimal("3.27"), Decimal("0.00"), ())
    assert (month.gpu_seconds, month.jobs_count, month.month) == (Decimal(4900), 2, date(2026, 11, 1))
    assert [(share.label, share.amount) for share in month.by_person] == [
        ("lead", Decimal("2.67")),
        ("member", Decimal("0.60")),
    ]
    assert [share.name for share in month.jobs] == ["other", job.name]
    for parts in (month.by_day, month.by_model, month.by_person, month.by_template, month.jobs):
        assert sum((part.amount for part in parts), Decimal(0)) == month.total


def test_case_33_the_months_of_a_job_across_their_border_add_up(job: Job, team: Team, settings: Settings) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    hold(job, datetime(2026, 11, 30, 22, 59, 58, tzinfo=UTC), 4)
    for _rated in (False, True):
        november = team_month(team, NOVEMBER, at(90_000))
        december = team_month(team, DECEMBER, at(90_000))
        assert (november.gpu_seconds, december.gpu_seconds) == (Decimal(2), Decimal(2))
        assert [row.day for row in november.by_day] == [date(2026, 11, 30)]
        services.rate()


def test_charges_made_in_another_time_zone_are_clipped(job: Job, team: Team, settings: Settings) -> None:
    hold(job, datetime(2026, 11, 30, 20, tzinfo=UTC), 6 * 3600)
    services.rate()
    settings.TIME_ZONE = "Pacific/Auckland"
    assert team_month(team, NOVEMBER, at(0)).gpu_seconds == 0
    assert team_month(team, DECEMBER, at(0)).gpu_seconds == 6 * 3600


def test_what_still_runs_is_provisional_and_in_the_total(job: Job, team: Team) -> None:
    hold(job, NOON, 3600)
    services.rate()
    hold(job, NOON, None)
    month = team_month(team, NOVEMBER, at(1800))
    assert (month.total, month.provisional) == (Decimal("3.60"), Decimal("1.20"))
    assert team_month(team, DECEMBER, at(1800)).total == Decimal("0.00")


def test_case_75_the_total_names_what_has_no_price(job: Job, team: Team) -> None:
    hold(job, NOON, 3600)
    hold(job, NOON, 3600, gpu_model="NVIDIA A100")
    assert team_month(team, NOVEMBER, at(9000)).missing == ("NVIDIA A100",)
    services.rate()
    month = team_month(team, NOVEMBER, at(9000))
    assert (month.total, month.missing) == (Decimal("2.40"), ("NVIDIA A100",))


def test_a_team_of_which_nothing_has_a_price_has_no_total(job: Job, team: Team) -> None:
    hold(job, NOON, 3600, resource="cpu")
    for _rated in (False, True):
        month = team_month(team, NOVEMBER, at(9000))
        assert (month.total, month.missing) == (None, ("cpu",))
        services.rate()


def test_a_team_that_used_nothing_has_a_total_of_zero(team: Team, other_team: Team, job: Job) -> None:
    hold(job)
    month = team_month(other_team, NOVEMBER, at(0))
    assert (month.total, month.missing, month.by_day, month.jobs_count) == (Decimal("0.00"), (), (), 0)


def test_the_ten_dearest_jobs(team: Team, member: User, site: factories.Site) -> None:
    for number in range(1, 13):
        hold(
            factories.make_job(team, member, site.gpu, state=State.SUCCEEDED, name=f"job {number}"), NOON, number * 100
        )
    month = team_month(team, NOVEMBER, at(0))
    assert [row.name for row in month.jobs] == [f"job {number}" for number in range(12, 2, -1)]
    assert month.jobs_count == 12


def test_a_month_needs_six_queries_however_much_was_used(
    job: Job, team: Team, django_assert_max_num_queries: object
) -> None:
    factories.make_price(PricedResource.CPU, "0.10")
    for number in range(20):
        hold(job, at(number * 100), 50)
        hold(job, at(number * 100), 50, resource="cpu")
    services.rate()
    hold(job, NOON, None)
    with django_assert_max_num_queries(6):  # type: ignore[operator]
        team_month(team, NOVEMBER, at(9000))


pytestmark = pytest.mark.django_db
