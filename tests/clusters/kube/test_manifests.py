"""What is sent to the cluster is right by construction, whatever people are called and whatever they type."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.clusters.kube import manifests
from portal.clusters.kube.backend import KubeBackend
from portal.clusters.specs import JobSpec
from tests.clusters.kube.expansion import environment, words
from tests.clusters.kube.stories import INSTANCE, SPACE, make_spec

GOLDEN = Path(__file__).parent / "golden"
# Everything that a form or a database can hold: any text that is UTF-8.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300)
# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def job(spec: JobSpec, instance: str = INSTANCE) -> dict[str, Any]:
    return manifests.job(spec, instance=instance)


def container(spec: JobSpec) -> dict[str, Any]:
    [only] = job(spec)["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def assert_golden(name: str, made: object) -> None:
    wanted = json.loads((GOLDEN / name).read_text())
    assert made == wanted, f"{name} differs; what is made now:\n{json.dumps(made, indent=2, ensure_ascii=False)}"


def test_a_gpu_job_is_exactly_this() -> None:
    spec = make_spec(
        gpus=4,
        cpu_millicores=8500,
        memory_mib=65536,
        args=("--data", "$HOME/x"),
        env=(("EPOCHS", "3"), ("PYTHONUNBUFFERED", "0")),
        secret_env=("TOKEN",),
        time_limit_seconds=7200,
        node_selector=(("nvidia.com/gpu.product", "NVIDIA-H100"),),
    )
    assert_golden("gpu_job.json", job(spec))


def test_an_array_is_exactly_this() -> None:
    assert_golden("array.json", job(make_spec(gpus=0, runs=5, parallelism=2, time_limit_seconds=600)))


def test_a_teams_space_is_exactly_this() -> None:
    assert_golden("space.json", manifests.space(SPACE, instance=INSTANCE))


def test_no_run_of_an_array_ends_the_others() -> None:
    body = job(make_spec(runs=5))["spec"]
    assert body["completionMode"] == "Indexed"
    assert body["backoffLimitPerIndex"] == 0
    assert "backoffLimit" not in body  # its default in that mode is no limit for the whole
    assert body["parallelism"] == body["completions"] == 5


@pytest.mark.parametrize(("runs", "parallelism", "at_once"), [(5, None, 5), (5, 2, 2), (5, 9, 5), (1, None, 1)])
def test_as_many_runs_at_once_as_allowed(runs: int, parallelism: int | None, at_once: int) -> None:
    assert job(make_spec(runs=runs, parallelism=parallelism))["spec"]["parallelism"] == at_once


def test_each_run_has_the_time_limit_and_the_whole_job_a_later_one() -> None:
    body = job(make_spec(runs=5, parallelism=2, time_limit_seconds=600))["spec"]
    assert body["template"]["spec"]["activeDeadlineSeconds"] == 600
    # three waves of two, and an hour for nodes and images
    assert body["activeDeadlineSeconds"] == 3 * 600 + 3600


def test_without_a_time_limit_nothing_ends_a_job() -> None:
    body = job(make_spec())["spec"]
    assert "activeDeadlineSeconds" not in body
    assert "activeDeadlineSeconds" not in body["template"]["spec"]


def test_a_job_without_gpus_sees_none() -> None:
    spec = make_spec(gpus=0, env=(("NVIDIA_VISIBLE_DEVICES", "all"),))
    assert environment(container(spec)["env"])["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "nvidia.com/gpu" not in container(spec)["resources"]["limits"]


def test_a_plain_job_is_run_number_0_like_the_first_of_an_array() -> None:
    assert environment(container(make_spec())["env"])["JOB_COMPLETION_INDEX"] == "0"
    assert "JOB_COMPLETION_INDEX" not in environment(container(make_spec(runs=2))["env"])


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "a b",
        "a=b",
        "\"'",
        "$HOME",
        "$(FIRST)",
        "$$(FIRST)",
        "$",
        "$$",
        "$(",
        "back\\slash",
        "\t",
        "two\nlines",
        "ü€😀",
    ],
)
def test_a_value_arrives_byte_for_byte(value: str) -> None:
    spec = make_spec(env=(("FIRST", "1"), ("VALUE", value)), args=(value,))
    assert environment(container(spec)["env"])["VALUE"] == value
    assert words(container(spec))[-1] == value


@given(texts, texts)
def test_any_values_arrive_byte_for_byte(one: str, other: str) -> None:
    spec = make_spec(
        env=(("A", one), ("B", other + "$(A)"), ("C", "$$(A)" + one)), command=(one, "$(B)"), args=(other,)
    )
    made = environment(container(spec)["env"])
    assert (made["A"], made["B"], made["C"]) == (one, other + "$(A)", "$$(A)" + one)
    assert words(container(spec)) == [one, "$(B)", other]


def assert_valid_names(metadata: dict[str, Any]) -> None:
    for key, value in metadata["labels"].items():
        assert LABEL_KEY.fullmatch(key), key
        assert LABEL_VALUE.fullmatch(value), (key, value)
        assert len(value) <= 63, (key, value)
    for key, value in metadata.get("annotations", {}).items():
        assert LABEL_KEY.fullmatch(key), key
        assert isinstance(value, str)


@given(team=texts, person=texts, name=texts, instance=texts)
def test_case_55_any_name_gives_labels_that_kubernetes_takes(team: str, person: str, name: str, instance: str) -> None:
    made = job(make_spec(team=team, submitted_by=person, display_name=name), instance)
    assert_valid_names(made["metadata"])
    assert_valid_names(made["spec"]["template"]["metadata"])
    assert made["metadata"]["annotations"]["beamtime/name"] == name
    assert made["metadata"]["annotations"]["beamtime/submitted-by"] == person


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("faculty.a", "faculty-a"),
        ("_@example.com", "-@example.com"),
        ("数学", "物理"),
        ("a" * 100, "a" * 101),
        ("Vision", "vision"),
    ],
)
def test_case_55_two_teams_never_get_the_same_label(one: str, other: str) -> None:
    label = manifests.TEAM_LABEL
    assert (
        job(make_spec(team=one))["metadata"]["labels"][label] != job(make_spec(team=other))["metadata"]["labels"][label]
    )


@given(texts)
def test_case_57_a_name_is_never_part_of_an_object_name(name: str) -> None:
    made = job(make_spec(display_name=name))
    assert made["metadata"]["name"] == make_spec().name


def test_what_a_preview_shows_is_what_is_made_and_no_secret() -> None:
    spec = make_spec(secret_env=("TOKEN", "KEY"))
    shown = KubeBackend(cluster="main", kubeconfig="", instance=INSTANCE).manifests(spec)
    assert [each["kind"] for each in shown] == ["Job", "Secret"]
    assert shown[0] == job(spec)
    made = manifests.secret(spec, {"TOKEN": "hush", "KEY": "$(TOKEN)"}, owner_uid="1", instance=INSTANCE)
    assert set(shown[1]["stringData"]) == set(made["data"]) == {"TOKEN", "KEY"}
    assert set(shown[1]["stringData"].values()) == {"(hidden)"}
    assert base64.b64decode(made["data"]["KEY"]) == b"$(TOKEN)"


def test_a_secret_goes_with_its_job() -> None:
    spec = make_spec(secret_env=("TOKEN",))
    made = manifests.secret(spec, {"TOKEN": "hush"}, owner_uid="the-uid", instance=INSTANCE)
    [owner] = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", spec.name, "the-uid")
    reference = next(entry for entry in container(spec)["env"] if entry["name"] == "TOKEN")
    assert reference["valueFrom"]["secretKeyRef"] == {"name": made["metadata"]["name"], "key": "TOKEN"}
