"""The demo site: made once, completed where something is missing, and otherwise left as people changed it."""

import stat
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

from portal.catalog.models import Template, VersionState
from portal.clusters.gateway import backend_of, forget_backends
from portal.clusters.local.devices import Gpu
from portal.clusters.models import Cluster
from portal.config import demo
from portal.funds.models import Price
from portal.quotas.models import ClusterQueue, FlavorQuota
from portal.teams.models import Membership, Role, Team, User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.BEAMTIME_DATA_DIR = tmp_path
    settings.BEAMTIME_DEMO_PASSWORD = ""
    settings.BEAMTIME_CLUSTER_BACKEND = "local"
    monkeypatch.setattr(demo, "installed", tuple)
    forget_backends()
    yield
    forget_backends()


def test_the_accounts_teams_and_queues_have_the_names_that_scripts_rely_on() -> None:
    demo.seed()
    assert set(User.objects.values_list("username", flat=True)) == {"member", "lead", "outsider", "auditor", "admin"}
    found = set(Membership.objects.values_list("user__username", "team__slug", "role"))
    assert found == {
        ("member", "vision", Role.MEMBER),
        ("lead", "vision", Role.LEAD),
        ("outsider", "language", Role.MEMBER),
    }
    assert User.objects.get(username="admin").is_superuser
    assert User.objects.get(username="auditor").is_auditor
    assert set(ClusterQueue.objects.values_list("name", flat=True)) == {"gpu", "cpu"}
    slugs = Template.objects.filter(versions__state=VersionState.PUBLISHED).values_list("slug", flat=True)
    assert set(slugs) == {"script", "train-small-model", "gpu-check", "data-preparation", "array"}


def test_without_real_gpus_the_demos_are_pretended_and_called_so() -> None:
    demo.seed()
    labels = [flavor.label for flavor in Cluster.objects.get().flavors.exclude(gpu_model="")]
    assert labels == ["NVIDIA A100 40 GB (pretended)", "NVIDIA H100 80 GB (pretended)"]
    gpus = FlavorQuota.objects.filter(resource="nvidia.com/gpu").values_list("flavor__name", "nominal")
    assert set(gpus) == {("a100", Decimal(4)), ("h100", Decimal(4))}


def test_with_real_gpus_the_demo_offers_those_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = (Gpu(0, "NVIDIA H200", 140), Gpu(1, "NVIDIA H200", 140), Gpu(2, "NVIDIA RTX 6000 Ada Generation", 48))
    monkeypatch.setattr(demo, "installed", lambda: gpus)
    demo.seed()
    flavors = {flavor.name: flavor for flavor in Cluster.objects.get().flavors.exclude(gpu_model="")}
    assert set(flavors) == {"nvidia-h200", "nvidia-rtx-6000-ada-generation"}
    assert not any(flavor.pretended for flavor in flavors.values())
    quota = FlavorQuota.objects.get(flavor=flavors["nvidia-h200"], resource="nvidia.com/gpu")
    assert quota.nominal == 2
    assert Price.objects.filter(gpu_model="NVIDIA H200").exists()


def test_the_cluster_gets_the_queues_and_every_model_has_a_price() -> None:
    demo.seed()
    snapshot = backend_of(Cluster.objects.get()).read_queues()
    assert [queue.name for queue in snapshot.queues] == ["cpu", "gpu"]
    assert [flavor.name for flavor in snapshot.flavors if flavor.pretended] == ["a100", "h100"]
    priced = set(Price.objects.values_list("resource", "gpu_model"))
    assert priced == {("gpu", "NVIDIA A100 40 GB"), ("gpu", "NVIDIA H100 80 GB"), ("cpu", "")}


def test_a_second_start_changes_nothing_and_has_the_same_password() -> None:
    first = demo.seed()
    hashes = dict(User.objects.values_list("username", "password"))
    counts = [model.objects.count() for model in (Team, Price, ClusterQueue, FlavorQuota, Template)]
    assert demo.seed() == first
    assert dict(User.objects.values_list("username", "password")) == hashes
    assert [model.objects.count() for model in (Team, Price, ClusterQueue, FlavorQuota, Template)] == counts
    assert User.objects.get(username="member").check_password(first)


def test_what_an_administrator_changed_stays_changed() -> None:
    demo.seed()
    FlavorQuota.objects.filter(flavor__name="h100", resource="nvidia.com/gpu").update(nominal=2)
    ClusterQueue.objects.filter(name="cpu").update(stopped=True)
    Membership.objects.filter(user__username="member").update(role=Role.LEAD)
    demo.seed()
    assert FlavorQuota.objects.get(flavor__name="h100", resource="nvidia.com/gpu").nominal == 2
    assert ClusterQueue.objects.get(name="cpu").stopped
    assert Membership.objects.get(user__username="member").role == Role.LEAD


def test_a_given_password_is_taken_and_a_made_one_lies_in_a_file_for_ones_own_eyes(
    settings: Settings, tmp_path: Path
) -> None:
    made = demo.seed()
    kept = tmp_path / "demo-password"
    assert kept.read_text().strip() == made
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    settings.BEAMTIME_DEMO_PASSWORD = "a password of my own"
    assert demo.seed() == "a password of my own"
    assert User.objects.get(username="lead").check_password("a password of my own")


def test_the_command_prints_every_account_and_the_password(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    call_command("seed_demo")
    printed = capsys.readouterr().out
    for account in demo.ACCOUNTS:
        assert account.username in printed
    assert (tmp_path / "demo-password").read_text().strip() in printed


def test_a_production_site_gets_its_cluster_and_templates_but_no_demo(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("site_setup")
    call_command("site_setup")
    assert Cluster.objects.count() == 1
    assert Template.objects.count() == 5
    assert not User.objects.exists()
    assert "nothing new" in capsys.readouterr().out
