"""Charging what was used: once, exactly, whoever does it and how often."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import IntegrityError, InternalError, connection, transaction

from portal.core.money import to_amount
from portal.costs import services, tasks
from portal.costs.models import ChargeLine, Unpriced
from portal.costs.policy import total
from portal.costs.selectors import job_cost
from portal.funds.models import PricedResource
from portal.jobs.models import Job, State
from portal.teams.models import Membership, Team
from portal.usage.models import Interval
from tests import factories
from tests.costs.factory import at, hold

# A model for which the site has no price yet.
NEW = "NVIDIA L40S"


def test_an_hour_of_an_h100_costs_what_the_table_says(job: Job) -> None:
    hold(job)
    assert services.rate() == 1
    line = ChargeLine.objects.get()
    assert (line.seconds, line.units, line.price_per_hour, line.currency) == (3600, Decimal(1), Decimal("2.40"), "EUR")
    assert (line.team_id, line.job_id, line.estimated) == (job.team_id, job.pk, False)
    assert job_cost(job, at(9999)).final == Decimal("2.40")


def test_the_worked_example_of_money_md(job: Job) -> None:
    factories.make_price(PricedResource.GPU, "2.00", gpu_model=NEW)
    factories.make_price(PricedResource.GPU, "3.00", gpu_model=NEW, valid_from=at(0))
    hold(job, at(-3600), 9001, units=Decimal(2), gpu_model=NEW)
    services.rate()
    lines = ChargeLine.objects.order_by("started_at")
    assert [(line.started_at, line.ended_at, line.seconds) for line in lines] == [
        (at(-3600), at(0), 3600),
        (at(0), at(5401), 5401),
    ]
    raws = [line.seconds * line.units * line.price_per_hour for line in lines]
    assert raws == [14_400, 32_406]
    assert [to_amount(raw) for raw in raws] == [Decimal("4.00"), Decimal("9.00")]
    assert job_cost(job, at(9999)).final == Decimal("13.00")
    assert to_amount(total(raws) * 10_000) == Decimal("130016.67")


def test_case_71_a_hundred_runs_of_15_minutes_are_90_000_seconds(job: Job) -> None:
    for number in range(100):
        hold(job, at(number * 10), 900)
    services.rate()
    seconds = list(ChargeLine.objects.values_list("seconds", flat=True))
    assert seconds == [900] * 100
    assert sum(seconds) == 90_000
    # 0.60 each, 60.00 together; a rounding per run would only be seen with a price such as the next.
    assert job_cost(job, at(0)).final == Decimal("60.00")


def test_case_71_rounding_happens_once_on_the_money(job: Job) -> None:
    factories.make_price(PricedResource.GPU, "0.05", gpu_model=NEW)
    for number in range(100):
        hold(job, at(number * 10), 900, gpu_model=NEW)
    services.rate()
    # 0.0125 a run: rounded one by one that would be 1.00.
    assert job_cost(job, at(0)).final == Decimal("1.25")


def test_a_line_says_its_sum_to_the_last_digit_on_either_database(job: Job) -> None:
    factories.make_price(PricedResource.GPU, "1234.5678901234", gpu_model=NEW)
    hold(job, at(0), 604_799, gpu_model=NEW)
    services.rate()
    # Two lines, since a month ends in between.
    assert total(line.exact for line in ChargeLine.objects.all()) == 604_799 * Decimal("1234.5678901234")


def test_rating_twice_changes_nothing(job: Job) -> None:
    hold(job)
    hold(job, seconds=None)
    assert services.rate() == 1
    before = list(ChargeLine.objects.values_list("id", "raw"))
    assert services.rate() == 0
    tasks.rate()
    assert list(ChargeLine.objects.values_list("id", "raw")) == before


def test_more_than_a_batch_is_rated_in_one_go(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "BATCH", 3)
    for number in range(10):
        hold(job, at(number))
    assert services.rate() == 10


def test_case_33_a_job_across_the_end_of_the_month_belongs_to_both_by_the_second(job: Job) -> None:
    hold(job, datetime(2026, 11, 30, 23, 59, 58, tzinfo=UTC), 4)
    services.rate()
    assert list(ChargeLine.objects.order_by("started_at").values_list("started_at__month", "seconds")) == [
        (11, 2),
        (12, 2),
    ]


def test_case_73_a_unit_costs_what_the_table_says_whatever_stands_beside_it(job: Job) -> None:
    for resource, model in (("cpu", ""), ("memory", ""), ("gpu", NEW)):
        factories.make_price(resource, "1.00", gpu_model=model)
    hold(job, gpu_model=NEW)
    hold(job, resource="cpu", units=Decimal(8))
    hold(job, resource="memory", units=Decimal(64))
    services.rate()
    assert {line.price_per_hour for line in ChargeLine.objects.all()} == {Decimal(1)}
    assert job_cost(job, at(0)).final == Decimal(73)


def test_case_75_no_price_is_no_price_and_is_charged_once_one_is_entered(job: Job) -> None:
    hold(job, gpu_model=NEW)
    assert services.rate() == 0
    assert Unpriced.objects.get().sku == NEW
    cost = job_cost(job, at(0))
    assert (cost.final, cost.amount, cost.missing, cost.provisional) == (None, None, (NEW,), False)
    factories.make_price(PricedResource.GPU, "2.00", gpu_model="NVIDIA A100")
    assert services.rate() == 0
    factories.make_price(PricedResource.GPU, "2.00", gpu_model=NEW, valid_from=at(-86_400))
    assert services.rate() == 1
    assert services.rate() == 0
    assert not Unpriced.objects.exists()
    cost = job_cost(job, at(0))
    assert (cost.final, cost.missing) == (Decimal("2.00"), ())


def test_case_75_a_price_of_zero_reads_as_free(job: Job) -> None:
    factories.make_price(PricedResource.GPU, "0", gpu_model=NEW)
    hold(job, gpu_model=NEW)
    services.rate()
    cost = job_cost(job, at(0))
    assert (cost.final, cost.free, cost.missing) == (Decimal("0.00"), True, ())


def test_a_price_that_begins_in_the_middle_prices_the_rest(job: Job) -> None:
    factories.make_price(PricedResource.GPU, "3.60", gpu_model=NEW, valid_from=at(3000))
    hold(job, gpu_model=NEW)
    assert services.rate() == 1
    assert Unpriced.objects.get().seconds == 3000
    cost = job_cost(job, at(0))
    assert (cost.final, cost.missing) == (Decimal("0.60"), (NEW,))
    factories.make_price(PricedResource.GPU, "9", gpu_model=NEW, valid_from=at(9000))
    assert services.rate() == 0


def test_case_69_leaving_and_closing_change_no_charge(job: Job) -> None:
    hold(job)
    Membership.objects.all().delete()
    assert job.submitted_by is not None
    job.submitted_by.delete()
    Team.objects.filter(pk=job.team_id).update(closed_at=at(0))
    services.rate()
    assert ChargeLine.objects.get().team_id == job.team_id


def test_an_interval_of_no_seconds_makes_no_line_and_is_done(job: Job) -> None:
    hold(job, seconds=0)
    assert services.rate() == 0
    assert Interval.objects.get().frozen_at is not None
    assert job_cost(job, at(0)).final == Decimal("0.00")


def test_an_estimated_end_is_said_on_every_line(job: Job) -> None:
    hold(job, estimated=True)
    services.rate()
    assert ChargeLine.objects.get().estimated
    assert job_cost(job, at(0)).lines[0].estimated


def test_nobody_changes_or_deletes_a_charge(job: Job) -> None:
    hold(job)
    services.rate()
    with pytest.raises((IntegrityError, InternalError)), transaction.atomic():
        ChargeLine.objects.update(seconds=1)
    with pytest.raises((IntegrityError, InternalError)), transaction.atomic():
        ChargeLine.objects.all()._raw_delete("default")
    assert ChargeLine.objects.get().seconds == 3600


def test_while_it_runs_the_cost_so_far_grows_and_is_provisional(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(state=State.RUNNING)
    job.refresh_from_db()
    assert job_cost(job, at(0)).so_far == Decimal("0.00")
    hold(job, at(0), None, units=Decimal(4))
    assert [job_cost(job, at(seconds)).so_far for seconds in (0, 900, 3600)] == [
        Decimal("0.00"),
        Decimal("2.40"),
        Decimal("9.60"),
    ]
    cost = job_cost(job, at(3600))
    assert (cost.final, cost.provisional, cost.lines[0].provisional) == (None, True, True)


def test_a_finished_job_is_final_only_when_all_of_it_is_charged(job: Job) -> None:
    hold(job)
    assert (job_cost(job, at(9999)).final, job_cost(job, at(9999)).so_far) == (None, Decimal("2.40"))
    services.rate()
    assert job_cost(job, at(9999)).final == Decimal("2.40")


def test_a_job_that_just_ended_is_not_final_before_its_usage_is_known(job: Job) -> None:
    job.attempts.update(object_uid="j-1")
    assert job_cost(job, at(0)).provisional
    job.attempts.update(stored_at=at(0))
    assert job_cost(job, at(0)).final == Decimal("0.00")


def test_a_job_without_gpus_and_prices_never_reads_as_free(job: Job) -> None:
    hold(job, resource="cpu")
    hold(job, resource="memory")
    services.rate()
    cost = job_cost(job, at(0))
    assert (cost.final, cost.free, cost.missing) == (None, False, ("cpu",))


def test_cores_without_a_price_are_not_missed_beside_a_priced_gpu(job: Job) -> None:
    hold(job)
    hold(job, resource="cpu")
    services.rate()
    assert job_cost(job, at(0)).missing == ()


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_charge_once() -> None:
    site = factories.make_site()
    team = Team.objects.create(slug="vision", name="Vision")
    job = factories.make_job(team, factories.make_user("member"), site.gpu, state=State.SUCCEEDED)
    for number in range(30):
        hold(job, at(number * 10), 3600)

    def work(_number: int) -> int:
        try:
            return services.rate()
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        written = list(pool.map(work, range(6)))
    assert sum(written) == 30
    assert ChargeLine.objects.count() == 30
    assert job_cost(job, at(0)).final == Decimal("72.00")
