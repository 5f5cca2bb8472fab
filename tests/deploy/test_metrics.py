"""The operator's table of metrics names what there is, and the expressions for alerts ask for nothing else."""

import re

import pytest

from portal.core import metrics
from portal.web.metrics import figures
from tests.deploy.yamls import BASE, DEPLOY, one, pods

HANDBOOK = (DEPLOY / "README.md").read_text()


def rows() -> dict[str, tuple[str, str, str]]:
    """The handbook's: name -> (kind, labels, what it is)."""
    found = re.findall(r"^\| `(beamtime_\w+)` \| (\w+) \| (.*?) \| .*? \| (.*) \|$", HANDBOOK, re.M)
    return {name: (kind, labels, what) for name, kind, labels, what in found}


@pytest.mark.django_db
def test_the_table_is_what_is_counted() -> None:
    there = {}
    for family in [*metrics.REGISTRY.collect(), *figures()]:
        if family.name.startswith("process_"):
            continue
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        name = family.name + "_total" * (family.type == "counter")
        there[name] = (family.type, ", ".join(f"`{label}`" for label in labels) or "–", family.documentation)
    assert rows() == there


def test_names_are_as_prometheus_wants_them() -> None:
    for name, (kind, _, _) in rows().items():
        assert name.endswith("_total") == (kind == "counter"), name
        assert not re.search(r"(milli|minutes|hours|kib|mib)", name), name


def test_no_label_can_take_any_value() -> None:
    labels = {label for _, labels, _ in rows().values() for label in re.findall(r"`(\w+)`", labels)}
    assert labels == {"state", "cause", "source", "status", "result", "transport", "subject"}


def test_alerts_ask_only_for_what_there_is() -> None:
    text = HANDBOOK.split("Expressions worth an alert")[1].split("\n## ")[0]
    asked = set(re.findall(r"beamtime_\w+", text))
    assert asked
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked} <= set(rows())


def test_watch_and_worker_show_theirs_on_the_port_of_the_settings() -> None:
    config = one("ConfigMap", "beamtime")["data"]
    for name in ("watch", "worker"):
        container = pods()[f"beamtime-{name}"]["containers"][0]
        [port] = [each["containerPort"] for each in container["ports"] if each["name"] == "metrics"]
        assert str(port) == config["BEAMTIME_METRICS_PORT"]
    environment = {each["name"]: each["value"] for each in pods()["beamtime-worker"]["containers"][0]["env"]}
    assert environment[metrics.POOL_FOLDER].startswith("/tmp/"), "the only place where a process may write"


def test_only_prometheus_gets_to_the_port_without_a_token() -> None:
    rule = one("NetworkPolicy", "beamtime-metrics")["spec"]["ingress"]
    assert rule == [
        {
            "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
            "ports": [{"port": "metrics", "protocol": "TCP"}],
        }
    ]
    assert "metrics" not in (BASE / "web.yaml").read_text()
