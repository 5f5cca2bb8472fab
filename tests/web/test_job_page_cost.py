"""The cost of a job on its page: so far, final, free, unknown; and the lines that it is the sum of."""

from portal.costs.services import rate
from portal.jobs.models import State
from portal.teams.models import Team, User
from portal.usage.models import Interval
from tests.factories import Site, make_price
from tests.web.job_stories import TWO_GPUS, address, ago, ended, pod_of, runs, story
from tests.web.pages import as_person, html, words


def test_so_far_is_provisional_and_shows_its_formula(site: Site, team: Team, member: User) -> None:
    page = as_person(member).get(address(runs(site, team, member, minutes=60)))
    said = words(page)
    assert "Cost so far, updates every 10 s €4.80 of at most €38.40" in said
    assert "2 × H100 (pretended) held for 1 h" in said
    assert "at €2.40 per GPU-hour (price of 1 Jan 2020)." in said
    assert "Provisional until it has ended. Lines" in said
    assert 'class="bt-fill bt-fill--accent" x="0%" width="12.5%"' in html(page)


def test_the_final_note_says_that_nothing_changes_it(site: Site, team: Team, member: User) -> None:
    job = ended(site, team, member, State.SUCCEEDED, minutes=60)
    client = as_person(member)
    before = words(client.get(address(job)))
    assert "Cost being settled €4.80" in before
    assert "Counted within a minute." in before
    rate()
    after = words(client.get(address(job)))
    assert "Cost final €4.80 of at most €38.40" in after
    assert "Final €4.80" in after
    assert "Nothing changes it any more." in after


def test_a_page_that_is_settled_stops_asking(site: Site, team: Team, member: User) -> None:
    job = ended(site, team, member, State.SUCCEEDED)
    client = as_person(member)
    assert 'data-settled="no"' in html(client.get(address(job)))
    rate()
    assert 'data-settled="yes"' in html(client.get(address(job)))


def test_no_price_is_not_nothing(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    Interval.objects.update(gpu_model="NVIDIA L40S")
    said = words(as_person(member).get(address(job)))
    assert "no price There is no price for NVIDIA L40S." in said
    assert "€0.00" not in said


def test_a_price_of_zero_is_free(site: Site, team: Team, member: User) -> None:
    make_price("gpu", "0", gpu_model="NVIDIA H100", valid_from=ago(days=1))
    said = words(as_person(member).get(address(runs(site, team, member))))
    assert "€0.00" not in said
    assert "updates every 10 s free" in said


def test_what_rounds_to_nothing_says_so(site: Site, team: Team, member: User) -> None:
    job = ended(site, team, member, State.SUCCEEDED)
    Interval.objects.update(started_at=ago(minutes=5, seconds=2), ended_at=ago(minutes=5))
    rate()
    said = words(as_person(member).get(address(job)))
    assert "It cost less than a cent." in said
    assert "final under €0.01" in said


def test_more_than_the_estimate_does_not_leave_the_bar(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member, minutes=9 * 60)
    page = html(as_person(member).get(address(job)))
    assert 'x="0%" width="100%"' in page
    assert 'x1="88.89%"' in page


def test_several_pods_are_one_sum(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member, minutes=60)
    pod_of(job, index=1, started_at=ago(minutes=60))
    assert "4.00 GPU-hours of H100 (pretended) at €2.40 each" in words(as_person(member).get(address(job)))


def test_every_line_stands_on_the_cost_part(site: Site, team: Team, member: User) -> None:
    job = ended(site, team, member, State.SUCCEEDED, minutes=15)
    rate()
    said = words(as_person(member).get(address(job, "cost/")))
    assert "H100 (pretended) 2" in said
    assert "900" in said
    assert "900 2 €2.40 €1.20" in said


def test_a_line_under_a_cent_is_not_called_free(site: Site, team: Team, member: User) -> None:
    job = ended(site, team, member, State.SUCCEEDED)
    Interval.objects.update(started_at=ago(minutes=5, seconds=2), ended_at=ago(minutes=5))
    rate()
    said = words(as_person(member).get(address(job, "cost/")))
    assert "2 2 €2.40 €0.002667" in said


def test_a_job_that_ended_within_a_second_says_so(site: Site, team: Team, member: User) -> None:
    job = story(site, team, member, State.FAILED, started_at=ago(minutes=1), ended_at=ago(minutes=1))
    said = words(as_person(member).get(address(job)))
    assert "It ended within a second." in said
    assert "No node" not in said


def test_a_job_that_never_held_anything_says_so(site: Site, team: Team, member: User) -> None:
    job = story(site, team, member, State.CANCELLED, ended_at=ago(minutes=1))
    said = words(as_person(member).get(address(job, "cost/")))
    assert "Nothing was held No node was given to the job, so it cost nothing." in said
    assert "of at most" not in said


def test_a_job_without_gpus_is_not_told_of_them(site: Site, team: Team, member: User) -> None:
    work = type(TWO_GPUS)(image="busybox", command=("true",))
    said = words(as_person(member).get(address(runs(site, team, member, work=work))))
    assert "GPUs" not in said.split("Facts")[1]
    assert "CPU, memory 1 core, 1 GiB" in said
