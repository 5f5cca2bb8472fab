"""Cost and verdict beside the form, before anything is sent."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from portal.catalog.services import install_shipped
from portal.clusters.models import ResourceFlavor
from portal.clusters.specs import WorkSpec
from portal.core.clock import now
from portal.jobs.models import Job, State
from portal.quotas.models import FlavorQuota
from portal.teams.models import Team, User
from tests.factories import Site, make_job, make_price
from tests.web.pages import as_person, elements, fields, html, words

SCRIPT = "/teams/vision/submit/script/"


@pytest.fixture
def client(site: Site, team: Team, member: User) -> Client:
    install_shipped()
    return as_person(member)


def estimate(client: Client, **values: str) -> str:
    form = fields(client.get(SCRIPT), "submit-form") | {"script": "echo", **values}
    answer = client.post(f"{SCRIPT}estimate/", form, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return words(answer)


def test_it_says_the_most_that_it_can_cost(client: Client) -> None:
    said = estimate(client, **{"gpu.count": "2", "time_limit": "90 min"})
    assert "€4.80 per hour" in said
    assert "€7.20 at most, for 1 h 30 min" in said
    assert "2 × NVIDIA H100 €2.40 an hour each" in said


def test_what_is_free_would_start_now(client: Client) -> None:
    assert "Would start now What it asks is free in ClusterQueue gpu." in estimate(client, **{"gpu.count": "4"})


def test_what_is_taken_is_short_by_a_number(client: Client, site: Site, team: Team, member: User) -> None:
    busy = make_job(team, member, site.gpu, state=State.RUNNING, work=WorkSpec(image="i", command=("x",), gpus=3))
    busy.attempts.update(admitted_at=now(), flavor="h100")
    said = estimate(client, **{"gpu.count": "2"})
    assert "No room now: 1 H100 (pretended) short" in said
    assert "It asks 2 H100 (pretended); free in ClusterQueue gpu: 1." in said


def test_others_who_wait_are_counted(client: Client, site: Site, team: Team, member: User) -> None:
    for _ in range(2):
        make_job(team, member, site.gpu, state=State.QUEUED)
    assert "2 jobs ahead" in estimate(client, **{"gpu.count": "1"})


def test_what_can_never_fit_says_both_numbers_at_once(client: Client) -> None:
    said = estimate(client, **{"gpu.count": "4", "cores": "64"})
    assert "Can never fit" in said
    assert "it asks 64 cores, the most this queue can give is 32" in said


def test_no_price_is_no_price_and_never_zero(client: Client, site: Site) -> None:
    ResourceFlavor.objects.filter(pk=site.gpu_flavor.pk).update(gpu_model="NVIDIA B200")
    said = estimate(client, **{"gpu.count": "1"})
    assert "unknown There is no price for NVIDIA B200." in said
    assert "€0.00" not in said


def test_a_price_of_zero_is_free(client: Client) -> None:
    make_price("cpu", "0")
    assert "€0.00 at most" in estimate(client)
    assert "1 core free an hour each" in estimate(client)


def test_it_waits_for_fields_without_complaining_about_them(client: Client) -> None:
    said = estimate(client, script="", memory="lots")
    assert "2 fields need a change first" in said
    assert "1 field is not filled in yet" in estimate(client, script="")


def test_the_first_field_that_needs_a_change_is_named(client: Client) -> None:
    said = estimate(client, memory="a lot", time_limit="soon")
    assert "2 fields need a change first Memory: " in said
    assert "Such as" in said or "such as" in said
    assert "lots" not in said


def test_a_name_that_cannot_be_hides_neither_cost_nor_verdict(client: Client) -> None:
    assert "Would start now" in estimate(client, **{"job.name": "a/b", "gpu.count": "1"})


def test_the_phones_bar_goes_along(client: Client) -> None:
    form = fields(client.get(SCRIPT), "submit-form") | {"script": "echo", "gpu.count": "1"}
    part = client.post(f"{SCRIPT}estimate/", form, headers={"HX-Request": "true"})
    bar = next(div for div in elements(part, "div") if div.get("id") == "phone-verdict")
    assert bar["hx-swap-oob"] == "true"


def test_the_page_itself_has_it_without_script(client: Client) -> None:
    said = words(client.get("/teams/vision/submit/gpu-check/"))
    assert "Would start now" in said
    assert "at most, for" in said


def test_it_makes_nothing(client: Client) -> None:
    estimate(client, **{"gpu.count": "1"})
    assert not Job.objects.exists()


# --- the preview -------------------------------------------------------------------------------------------------


def preview(client: Client, fragment: bool, **values: str) -> Any:
    form = fields(client.get(SCRIPT), "submit-form") | {"script": "echo one\necho two", **values}
    return client.post(f"{SCRIPT}preview/", form, headers={"HX-Request": "true"} if fragment else {})


def test_the_drawer_shows_what_will_be_created_and_secrets_by_name_only(client: Client) -> None:
    part = preview(client, True, secret="hunter2", secret_name="HF_TOKEN", **{"gpu.count": "1"})
    said = words(part)
    assert "kind: Job" in said
    assert "kueue.x-k8s.io/queue-name: gpu" in said
    assert "HF_TOKEN" in said
    assert "hunter2" not in html(part)
    assert "<html" not in html(part)
    assert not Job.objects.exists()


def test_a_script_is_shown_line_by_line(client: Client) -> None:
    part = html(preview(client, True))
    assert "echo one</code>" in part
    assert "echo two</code>" in part


def test_without_script_it_is_a_page_with_the_form_as_typed(client: Client) -> None:
    page = preview(client, False, **{"job.name": "mine", "memory": "3 GiB"})
    assert page.status_code == 200
    assert "What will be created" in words(page)
    assert "kind: Job" in words(page)
    assert fields(page, "submit-form")["memory"] == "3 GiB"


def test_what_cannot_be_made_says_why(client: Client) -> None:
    part = preview(client, True, memory="lots")
    assert "Nothing can be made of the form as it stands:" in words(part)
    page = preview(client, False, memory="lots")
    assert page.status_code == 422
    assert 'id="f-memory_error"' in html(page)


def test_markup_stays_text(client: Client) -> None:
    part = html(preview(client, True, script="</code><script>alert(1)</script>"))
    assert "<script>alert" not in part


def test_amounts_are_exact(client: Client) -> None:
    make_price("gpu", "0.1", gpu_model="NVIDIA H100", valid_from=now())
    assert "€0.03 at most, for 20 min" in estimate(client, **{"gpu.count": "1", "time_limit": "20 min"})
    assert Decimal("0.1") * 20 / 60 > Decimal("0.03")


def test_any_model_costs_from_the_cheapest_to_the_dearest(client: Client, site: Site) -> None:
    l40s = ResourceFlavor.objects.create(cluster=site.cluster, name="l40s", gpu_model="NVIDIA L40S")
    for resource, nominal in (("nvidia.com/gpu", 8), ("cpu", 64), ("memory", 512)):
        FlavorQuota.objects.create(cluster_queue=site.gpu, flavor=l40s, resource=resource, nominal=nominal)
    make_price("gpu", "0.80", gpu_model="NVIDIA L40S")
    said = estimate(client, **{"gpu.count": "2", "time_limit": "1 h", "gpu.flavor": ""})
    assert "€1.60 to €4.80 At most, for 1 h, by the model that it gets." in said
    assert "€1.60 at most, for 1 h" in estimate(client, **{"gpu.count": "2", "time_limit": "1 h", "gpu.flavor": "l40s"})
