"""The page of a job that waits: the verdict in figures, what would help, what was checked, its place in the queue."""

import re
from dataclasses import replace

import pytest
from django.test import Client

from portal.catalog.models import TemplateVersion
from portal.catalog.services import install_shipped
from portal.clusters.models import ResourceFlavor
from portal.jobs.models import Job, State
from portal.quotas.models import ClusterQueue, FlavorQuota
from portal.teams.models import Team, User
from tests.factories import Site, make_price
from tests.web.job_stories import TWO_GPUS, address, ago, runs, story
from tests.web.pages import as_person, elements, html, queries, words

FOUR = replace(TWO_GPUS, gpus=4)
SHORT = "insufficient unused quota for nvidia.com/gpu in flavor h100, 2 more needed"
NO_ROOM = "No room now: 2 more GPUs are needed in flavor h100. It starts by itself once others end."


def waits(site: Site, team: Team, user: User, **fields: object) -> Job:
    """A job that Kueue says 2 GPUs are missing for."""
    values = {"reason": NO_ROOM, "reason_code": "quota", "submitted_at": ago(minutes=51), **fields}
    attempt = {"cluster_reason": "Pending", "cluster_message": SHORT}
    return story(site, team, user, State.QUEUED, attempt=attempt, **values)  # type: ignore[arg-type]


@pytest.fixture
def full(site: Site, team: Team, other_team: Team, member: User, outsider: User) -> list[Job]:
    """Both teams hold all four H100; ours reaches its limit first."""
    return [
        runs(site, team, member, minutes=50, name="depth-anything ft", work=replace(TWO_GPUS, time_limit_seconds=3600)),
        runs(site, other_team, outsider, minutes=10, name="secret of language"),
    ]


def page_of(client: Client, job: Job) -> str:
    return words(client.get(address(job)))


def test_the_head_says_how_many_are_short(site: Site, team: Team, member: User, full: list[Job]) -> None:
    said = page_of(as_person(member), waits(site, team, member))
    assert "No room now: 2 H100 (pretended) short checked" in said
    assert "It asks 2 H100 (pretended); free in ClusterQueue gpu: 0." in said
    assert re.search(r"Asks 2 H100 \(pretended\) Free for it 0 Short by 2 So since \d\d:\d\d 51 min", said)
    assert "Log begins" not in said


def test_what_happens_by_itself_names_the_jobs_that_end(site: Site, team: Team, member: User, full: list[Job]) -> None:
    said = page_of(as_person(member), waits(site, team, member))
    assert re.search(r"1 job reaches its limit by \d\d:\d\d and frees 2 H100 \(pretended\)\.", said)
    assert re.search(r"depth-anything ft \( \d\d:\d\d \)\. Nothing to do\.", said)


def test_another_teams_job_is_not_named(site: Site, team: Team, member: User, full: list[Job]) -> None:
    job = waits(site, team, member, work=FOUR)
    said = page_of(as_person(member), job)
    assert "2 jobs reach their limit by" in said
    assert "depth-anything ft (" in said
    assert "a job of Language (" in said
    assert "secret of language" not in said


def test_without_limits_no_time_is_promised(site: Site, team: Team, member: User) -> None:
    runs(site, team, member, work=replace(FOUR, time_limit_seconds=None))
    said = page_of(as_person(member), waits(site, team, member))
    assert "It starts by itself once enough jobs have ended. When that is, no time limit tells." in said


def test_a_job_that_is_being_stopped_frees_its_gpus_soon(site: Site, team: Team, member: User) -> None:
    stopping = runs(site, team, member, work=FOUR, name="being stopped", cancel_requested_at=ago(seconds=5))
    Job.objects.filter(pk=stopping.pk).update(state=State.CANCELLING)
    stopping.attempts.update(state=State.CANCELLING, due_at=ago())
    said = page_of(as_person(member), waits(site, team, member))
    assert "1 job is being stopped and frees 4 H100 (pretended)." in said


@pytest.fixture
def a100(site: Site) -> ResourceFlavor:
    """Four A100 that nobody holds."""
    flavor = ResourceFlavor.objects.create(cluster=site.cluster, name="a100", gpu_model="NVIDIA A100")
    for resource, nominal in (("nvidia.com/gpu", 4), ("cpu", 32), ("memory", 256)):
        FlavorQuota.objects.create(cluster_queue=site.gpu, flavor=flavor, resource=resource, nominal=nominal)
    make_price("gpu", "1.10", gpu_model="NVIDIA A100")
    return flavor


def test_a_shape_that_would_start_now_is_one_click_away(
    site: Site, team: Team, member: User, full: list[Job], a100: ResourceFlavor
) -> None:
    install_shipped()
    version = TemplateVersion.objects.get(template__slug="train-small-model")
    values = {"epochs": 7, "gpu": {"flavor": "h100", "count": 2}}
    job = waits(site, team, member, template_version=version, values=values)
    client = as_person(member)
    page = client.get(address(job))
    assert "Take 2 × A100: it would start now. At most €17.60." in words(page)
    (link,) = [a["href"] for a in elements(page, "a") if "shape=" in a.get("href", "")]
    form = client.get(link)
    inputs = {(i.get("name"), i.get("value")): i for i in elements(form, "input")}
    assert "checked" in inputs["gpu.flavor", "a100"]
    assert ("gpu.count", "2") in inputs
    assert ("epochs", "7") in inputs


def test_fewer_of_the_same_are_offered_where_some_are_free(site: Site, team: Team, member: User) -> None:
    runs(site, team, member, work=replace(TWO_GPUS, gpus=3))
    said = page_of(as_person(member), waits(site, team, member))
    assert "Take 1 × H100 (pretended): it would start now." in said


def test_no_shape_is_offered_that_others_wait_for(
    site: Site, team: Team, member: User, full: list[Job], a100: ResourceFlavor
) -> None:
    waits(site, team, member, work=replace(TWO_GPUS, flavor="a100"), submitted_at=ago(minutes=1))
    assert "would start now" not in page_of(as_person(member), waits(site, team, member))


def test_a_shape_in_an_address_is_only_a_suggestion(site: Site, team: Team, member: User) -> None:
    install_shipped()
    version = TemplateVersion.objects.get(template__slug="train-small-model")
    job = waits(site, team, member, template_version=version, values={"epochs": 7})
    for shape in ("", "*", "h100*", "*2", "h100*two", "h100*99999999", "<script>*1", "a*b*3"):
        form = as_person(member).get("/teams/vision/submit/train-small-model/", {"from": str(job.pk), "shape": shape})
        assert form.status_code == 200
        assert "<script>*" not in html(form)


def test_what_can_never_fit_says_both_numbers_and_offers_what_would(
    site: Site, team: Team, member: User, full: list[Job]
) -> None:
    reason = "Can never fit: it asks 8 GPUs, the most this queue can give is 4. Cancel it and ask for less."
    job = story(
        site, team, member, State.QUEUED, work=replace(TWO_GPUS, gpus=8), reason=reason, reason_code="never_fits"
    )
    page = as_person(member).get(address(job))
    said = words(page)
    assert "Can never fit checked" in said
    assert "It asks 8 GPUs, the most this queue can give is 4. Cancel it and ask for less." in said
    assert "Asks 8 H100 (pretended) The most this queue can give 4 H100 (pretended)" in said
    assert "Take 4 × H100 (pretended): it would fit." in said
    assert "bt-verdict--bad" in html(page)


def test_a_closed_queue_is_no_shortage(site: Site, team: Team, member: User) -> None:
    ClusterQueue.objects.filter(name="gpu").update(stopped=True)
    reason = "ClusterQueue gpu takes no work now. It goes on by itself once an administrator opens it again."
    job = story(site, team, member, State.QUEUED, reason=reason, reason_code="queue_closed")
    said = page_of(as_person(member), job)
    assert f"Held: the queue takes no work now checked {said.split('checked ')[1][:8]} {reason}" in said
    assert "Short by" not in said
    assert "Holds it back" not in said  # an icon's label, not a word of the page
    assert "Queue is open ClusterQueue gpu takes no work now" in said


def test_the_checks_come_in_one_order_with_what_holds_it_second(
    site: Site, team: Team, member: User, full: list[Job]
) -> None:
    said = page_of(as_person(member), waits(site, team, member))
    checks = said[said.index("What was checked") : said.index("Position")]
    names = ["Can ever fit", "Room in the quota", "Queue is open", "Its turn", "Held by nobody", "Image"]
    places = [checks.index(name) for name in names]
    assert places == sorted(places)
    assert "2 asked, 0 free in flavor h100, 2 more needed" in checks
    assert f"Kueue's own words Pending: {SHORT}" in checks


def test_kueue_knows_of_more_than_beamtime_does(site: Site, team: Team, member: User) -> None:
    """Another tool holds the quota: by Beamtime's books all is free, and Kueue's word counts."""
    said = page_of(as_person(member), waits(site, team, member))
    assert "No room now" in said
    assert "Free for it 0 Short by 2" in said


def test_room_and_nobody_before_it_is_not_called_a_shortage(site: Site, team: Team, member: User) -> None:
    job = story(site, team, member, State.QUEUED, reason="Waits for Kueue to look at it.", reason_code="waiting")
    said = page_of(as_person(member), job)
    assert "Waits for Kueue to look at it" in said
    assert "Free for it 4 Jobs ahead 0" in said


def test_its_place_counts_those_who_wait_for_the_same(
    site: Site, team: Team, other_team: Team, member: User, outsider: User, lead: User, full: list[Job]
) -> None:
    waits(site, other_team, outsider, name="secret of language", submitted_at=ago(minutes=70), work=FOUR)
    waits(site, team, lead, name="video-vae", submitted_at=ago(minutes=60))
    mine = waits(site, team, member)
    waits(site, team, member, name="younger", submitted_at=ago(minutes=3))
    page = as_person(member).get(address(mine))
    said = words(page)
    place = said[said.index("Position 3 of 4") :]
    assert place.index("1 A job of Language 4 × H100") < place.index("2 video-vae 2 × H100 lead, since")
    assert place.index("video-vae") < place.index("3 This job 2 × H100 since") < place.index("4 younger")
    assert "secret of language" not in said
    assert "2 jobs came before it" in said


def test_a_long_line_is_not_shown_whole(site: Site, team: Team, member: User) -> None:
    for minutes in range(100, 60, -1):
        waits(site, team, member, name=f"older {minutes}", submitted_at=ago(minutes=minutes))
    mine = waits(site, team, member)
    client = as_person(member)
    said = page_of(client, mine)
    assert "Position 41 of 41" in said
    assert "36 more" in said
    assert said.count("older ") == 4
    many = len(queries(lambda: client.get(address(mine))))
    Job.objects.filter(name__startswith="older").update(state=State.CANCELLED)
    Job.objects.filter(name__startswith="older").first().attempts.model.objects.exclude(job=mine).update(  # type: ignore[union-attr]
        state=State.CANCELLED
    )
    assert len(queries(lambda: client.get(address(mine)))) == many


def test_waiting_costs_nothing_and_the_card_says_what_it_would(site: Site, team: Team, member: User) -> None:
    said = page_of(as_person(member), waits(site, team, member))
    assert "Cost waiting costs nothing Estimated, at its limit of 8 h €38.40 While it runs €4.80 per hour" in said
    assert "€0.00" not in said
