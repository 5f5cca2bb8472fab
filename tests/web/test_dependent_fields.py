"""GPU flavors follow the queue, whatever the names hold (case 21)."""

import json

import pytest
from django.test import Client

from portal.catalog.services import install_shipped
from portal.clusters.models import ResourceFlavor
from portal.jobs.models import Job
from portal.quotas.models import ClusterQueue, FlavorQuota
from portal.teams.models import Membership, Team, User
from tests.factories import Site, make_user
from tests.web.pages import as_person, elements, fields, html, words

SCRIPT = "/teams/vision/submit/script/"
# A sanitiser that merges any two of them would offer one queue's flavors in the other.
NAMES = [
    "faculty_name.surname",
    "faculty-name-surname",
    "o'brien",
    'say "hi"',
    "a#b",
    "two words",
    "größe",
    "a\\b",
    "x]=y",
]


def offer(site: Site, name: str) -> tuple[ClusterQueue, ResourceFlavor]:
    flavor = ResourceFlavor.objects.create(cluster=site.cluster, name=f"gpu of {name}", gpu_model="NVIDIA H100")
    queue = ClusterQueue.objects.create(cluster=site.cluster, name=name)
    for resource, nominal in (("nvidia.com/gpu", 2), ("cpu", 8), ("memory", 64)):
        FlavorQuota.objects.create(cluster_queue=queue, flavor=flavor, resource=resource, nominal=nominal)
    return queue, flavor


@pytest.fixture
def client(site: Site, team: Team, member: User) -> Client:
    install_shipped()
    for name in NAMES:
        offer(site, name)
    return as_person(member)


def rows(client: Client) -> dict[str, list[str]]:
    """Flavor -> the queues that its row is shown for."""
    page = client.get(SCRIPT)
    labels = [label for label in elements(page, "label") if "data-bt-queues" in label]
    radios = [radio for radio in elements(page, "input") if radio.get("type") == "radio"]
    return {radio["value"]: json.loads(label["data-bt-queues"]) for label, radio in zip(labels, radios, strict=True)}


def test_case_21_each_flavor_names_exactly_its_own_queues(client: Client) -> None:
    found = rows(client)
    for name in NAMES:
        assert found[f"gpu of {name}"] == [name]
    assert found["h100"] == ["gpu"]
    assert set(NAMES) < set(found[""])


def test_case_21_every_queue_can_be_chosen_by_its_name(client: Client) -> None:
    options = [option["value"] for option in elements(client.get(SCRIPT), "option")]
    for name in NAMES:
        assert options.count(name) == 1


@pytest.mark.parametrize("name", NAMES)
def test_case_21_a_pair_that_belongs_together_is_taken(client: Client, name: str) -> None:
    form = fields(client.get(SCRIPT), "submit-form") | {"script": "echo", "job.queue": name}
    answer = client.post(SCRIPT, form | {"gpu.flavor": f"gpu of {name}", "gpu.count": "1"})
    assert answer.status_code == 302, words(answer)
    assert Job.objects.get().queue.cluster_queue.name == name


@pytest.mark.parametrize("name", NAMES)
def test_case_21_a_pair_that_the_page_should_not_have_offered_is_refused(client: Client, name: str) -> None:
    other = NAMES[(NAMES.index(name) + 1) % len(NAMES)]
    form = fields(client.get(SCRIPT), "submit-form") | {"script": "echo", "job.queue": name}
    answer = client.post(SCRIPT, form | {"gpu.flavor": f"gpu of {other}", "gpu.count": "1"})
    assert answer.status_code == 422
    assert "This queue does not have the flavor" in words(answer)
    assert not Job.objects.exists()


def test_case_21_a_queue_that_is_not_the_teams_is_refused(client: Client) -> None:
    ClusterQueue.objects.filter(name="o'brien").update(open_to_all=False)
    form = fields(client.get(SCRIPT), "submit-form") | {"script": "echo", "job.queue": "o'brien"}
    answer = client.post(SCRIPT, form)
    assert answer.status_code == 422
    assert 'id="f-job.queue_error"' in html(answer)


def test_case_21_people_with_such_names_are_found_and_kept_apart(client: Client, team: Team, lead: User) -> None:
    for username in ("faculty_name.surname", "faculty-name-surname", "_@example.com"):
        Membership.objects.create(team=team, user=make_user(username))
    as_person(lead).post("/teams/vision/people/role/", {"username": "faculty_name.surname", "role": "lead"})
    roles = dict(team.memberships.values_list("user__username", "role"))
    assert roles["faculty_name.surname"] == "lead"
    assert roles["faculty-name-surname"] == "member"
    assert client.get("/teams/vision/").status_code == 200


def test_one_queue_needs_no_choice(client: Client) -> None:
    ClusterQueue.objects.exclude(name="gpu").update(open_to_all=False)
    assert "job.queue" not in fields(client.get(SCRIPT), "submit-form")
