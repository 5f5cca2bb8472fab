"""What an operator applies is whole, and says the same in every place."""

import re
import shlex
from typing import Any

import pytest
import yaml

from portal.config.env import SETTINGS
from tests.deploy.yamls import BASE, DEPLOY, objects, one, pods

NAMES = {setting.name for setting in SETTINGS}
SECRETS = {setting.name for setting in SETTINGS if setting.kind == "secret"}
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
OURS = ("web", "worker", "beat", "watch", "migrate")


def dotenv() -> dict[str, str]:
    text = (DEPLOY / "compose" / "beamtime.env.example").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_every_file_of_the_base_is_applied_and_parses() -> None:
    kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    assert {path.name for path in BASE.glob("*.yaml")} == {*kustomization["resources"], "kustomization.yaml"}
    assert len(list(objects())) == len({(each["kind"], each["metadata"]["name"]) for each in objects()})


def test_only_settings_that_exist_are_given() -> None:
    secret = yaml.safe_load((BASE.parent / "secret.example.yaml").read_text())
    config = one("ConfigMap", "beamtime")["data"]
    given = {*config, *secret["stringData"], *dotenv(), *COMPOSE["services"]["web"]["environment"]}
    assert given <= NAMES
    assert not SECRETS & set(config), "a secret is no part of a ConfigMap"


def test_every_setting_that_server_mode_must_have_is_there_to_fill_in() -> None:
    must = {"BEAMTIME_SECRET_KEY", "BEAMTIME_SECRETS_KEYS", "DATABASE_URL", "REDIS_URL", "BEAMTIME_PUBLIC_URL"}
    secret = yaml.safe_load((BASE.parent / "secret.example.yaml").read_text())
    assert must <= {*secret["stringData"], *one("ConfigMap", "beamtime")["data"]}
    assert must <= set(dotenv())


def test_no_file_holds_a_real_key() -> None:
    secret = yaml.safe_load((BASE.parent / "secret.example.yaml").read_text())["stringData"]
    for values in (secret, dotenv()):
        assert values["BEAMTIME_SECRET_KEY"] == values["BEAMTIME_SECRETS_KEYS"] == ""


@pytest.mark.parametrize("hosts", [one("ConfigMap", "beamtime")["data"], dotenv()], ids=["kubernetes", "compose"])
def test_the_probes_host_is_allowed(hosts: dict[str, str]) -> None:
    assert "localhost" in hosts["BEAMTIME_ALLOWED_HOSTS"].split(",")


def test_both_ways_run_the_same_processes() -> None:
    assert {name.removeprefix("beamtime-") for name in pods()} == set(OURS)
    assert set(OURS) <= set(COMPOSE["services"])
    for name in OURS:
        here = COMPOSE["services"][name].get("command", [])
        there = pods()[f"beamtime-{name}"]["containers"][0].get("command", [])
        # "--flag value" and "--flag=value" are the same; -A is short for --app.
        one_way = " ".join(here).replace("-A ", "--app=").replace("--pool ", "--pool=")
        other_way = " ".join(there)
        assert re.sub(r"[ =]+", " ", one_way) == re.sub(r"[ =]+", " ", other_way), name


def test_the_commands_of_the_image_are_real() -> None:
    text = (DEPLOY / "image" / "Containerfile").read_text()
    assert "portal.config.asgi:application" in text
    sources = [word for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.M) for word in shlex.split(line)[:-1]]
    assert all((DEPLOY.parent / source).exists() for source in sources), sources


@pytest.mark.parametrize("name", sorted(pods()))
def test_every_pod_is_locked_down(name: str) -> None:
    pod = pods()[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        safe = container["securityContext"]
        assert safe["allowPrivilegeEscalation"] is False
        assert safe["readOnlyRootFilesystem"] is True
        assert safe["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["requests"]
        assert container["resources"]["limits"]["memory"]


def test_only_who_speaks_to_the_cluster_has_an_account() -> None:
    accounts = {name: pod.get("serviceAccountName", "") for name, pod in pods().items()}
    assert accounts == {
        "beamtime-web": "",
        "beamtime-beat": "",
        "beamtime-worker": "beamtime-worker",
        "beamtime-migrate": "beamtime-worker",
        "beamtime-watch": "beamtime-watch",
    }
    for name, pod in pods().items():
        assert pod["automountServiceAccountToken"] is bool(accounts[name])


def test_selectors_find_their_pods() -> None:
    labels = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in objects()
        if each["kind"] == "Deployment"
    }
    for each in objects():
        selector = each.get("spec", {}).get("selector") if each["kind"] in {"Service", "PodDisruptionBudget"} else None
        if selector is not None:
            wanted = selector.get("matchLabels", selector)
            assert wanted.items() <= labels[each["metadata"]["name"]].items()


def test_the_compose_services_wait_for_the_tables() -> None:
    for name in ("web", "worker", "beat", "watch"):
        after = COMPOSE["services"][name]["depends_on"]
        assert after["migrate"] == {"condition": "service_completed_successfully"}
