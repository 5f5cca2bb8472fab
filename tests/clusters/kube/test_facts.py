"""Objects of a cluster become facts, whatever they leave out.

`recorded.json` holds objects of a real Kubernetes 1.36.3 with Kueue 0.19.2 (managedFields left out): a job that can
never fit, an array with one failed run, a missing image, a missing command, a container killed for memory.
"""

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.clusters.kube import facts, values
from portal.clusters.kube.cache import Cache
from portal.clusters.specs import AttemptFacts

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text())
Path_ = tuple[str | int, ...]


def told(story: dict[str, Any]) -> AttemptFacts:
    """The facts of a recorded story, joined as they are in the watch."""
    cache = Cache("main")
    cache.put("jobs", story["job"])
    for workload in story["workloads"]:
        cache.put("workloads", workload)
    for pod in story["pods"]:
        cache.put("pods", pod)
    [key] = cache.dirty
    found = cache.take(key)
    assert found is not None
    return found


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# --- as recorded ---------------------------------------------------------------------------------------------------


def test_a_job_that_can_never_fit_waits_with_kueues_own_words() -> None:
    never = told(RECORDED["never"])
    assert never.job is not None
    assert never.workload is not None
    assert never.job.suspended
    [reserved] = [each for each in never.workload.conditions if each.type == "QuotaReserved"]
    assert reserved.status is False
    assert "insufficient quota for nvidia.com/gpu" in reserved.message
    assert (never.workload.cluster_queue, dict(never.workload.flavors), never.pods) == ("", {}, ())


def test_an_array_has_its_runs_by_number() -> None:
    array = told(RECORDED["array"])
    assert sorted((pod.index, pod.phase, pod.containers[0].exit_code) for pod in array.pods) == [
        (0, "Succeeded", 0),
        (1, "Failed", 1),
        (2, "Succeeded", 0),
    ]
    assert array.job is not None
    assert (array.job.succeeded, array.job.failed) == (2, 1)
    assert ("Failed", True, "FailedIndexes") in [(each.type, each.status, each.reason) for each in array.job.conditions]


def test_a_pod_knows_its_node_its_times_and_what_it_holds() -> None:
    pod = told(RECORDED["array"]).pods[0]
    assert pod.node == "gpu-a"
    assert pod.scheduled_at == at("2026-11-30T18:02:26")
    [container] = pod.containers
    assert (container.name, container.state, container.reason) == ("main", "terminated", "Completed")
    assert container.started_at == container.finished_at == at("2026-11-30T18:02:27")
    assert pod.requests == {"cpu": Decimal("0.05"), "memory": Decimal("0.0625")}


def test_an_admitted_workload_says_queue_and_flavors() -> None:
    workload = told(RECORDED["array"]).workload
    assert workload is not None
    assert workload.cluster_queue == "cpu"
    assert workload.flavors == {"cpu": "cpu", "memory": "cpu"}
    assert workload.active


def test_a_missing_image_is_said_with_the_runtimes_words() -> None:
    [container] = told(RECORDED["image"]).pods[0].containers
    assert (container.state, container.reason) == ("waiting", "ErrImagePull")
    assert "registry.test/nothere:1" in container.message


def test_a_container_that_never_started_did_not_start_in_1970() -> None:
    [container] = told(RECORDED["nocommand"]).pods[0].containers
    assert (container.reason, container.exit_code, container.started_at) == ("StartError", 128, None)
    assert container.finished_at == at("2026-11-30T18:02:27")


def test_case_65_a_container_killed_for_memory_says_so() -> None:
    [container] = told(RECORDED["oom"]).pods[0].containers
    assert (container.reason, container.exit_code) == ("OOMKilled", 137)


# --- what is left out ----------------------------------------------------------------------------------------------


def paths(value: Any, so_far: Path_ = ()) -> Iterator[Path_]:
    """The place of every field in an object, and of every entry of its lists."""
    entries: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*so_far, key)
        yield from paths(inner, (*so_far, key))


def changed(thing: dict[str, Any], where: Path_, *value: Any) -> dict[str, Any]:
    """A copy without the field, or with another value in it."""
    made = copy.deepcopy(thing)
    holder: Any = made
    for step in where[:-1]:
        holder = holder[step]
    if value:
        holder[where[-1]] = value[0]
    else:
        del holder[where[-1]]
    return made


ODD: tuple[Any, ...] = (None, "", "text", 0, -1, 1.5, True, [], {}, [None], {"": None}, "9" * 5000)


@pytest.mark.parametrize("kind", ["job", "workloads", "pods"])
@pytest.mark.parametrize("story", sorted(RECORDED))
def test_case_63_no_missing_field_breaks_the_watch(story: str, kind: str) -> None:
    things = RECORDED[story][kind]
    for thing in things if isinstance(things, list) else [things]:
        for where in paths(thing):
            cache = Cache("main")
            cache.put("jobs", RECORDED[story]["job"])
            plural: Any = "jobs" if kind == "job" else kind
            for made in (changed(thing, where), changed(thing, where, None)):
                cache.put(plural, made)
                cache.drop(plural, made)
                for key in list(cache.dirty):
                    cache.take(key)


@pytest.mark.parametrize("read", [facts.job_facts, facts.workload_facts, facts.pod_facts])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_case_63_no_odd_value_in_any_field_breaks_the_watch(read: Any, odd: Any) -> None:
    for story in ("array", "nocommand"):
        for thing in (RECORDED[story]["job"], RECORDED[story]["workloads"][0], RECORDED[story]["pods"][0]):
            for where in paths(thing):
                read(changed(thing, where, odd))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_case_63_no_scalar_of_any_shape_raises(value: Any) -> None:
    for read in (values.mapping, values.text, values.count, values.number, values.time, values.quantity):
        read(value)
    list(values.items(value))
    facts.effective_requests({"containers": [{"resources": {"requests": {"cpu": value}}}], "overhead": value})


# --- values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0", "0"),
        ("8", "8"),
        (8, "8"),
        (0.5, "0.5"),
        ("500m", "0.5"),
        ("1500000u", "1.5"),
        ("100n", "0.0000001"),
        ("1k", "1000"),
        ("2M", "2000000"),
        ("3G", "3000000000"),
        ("1T", "1000000000000"),
        ("1P", "1e15"),
        ("1E", "1e18"),
        ("1Ki", "1024"),
        ("1Mi", "1048576"),
        ("64Gi", "68719476736"),
        ("1Ti", "1099511627776"),
        ("1Pi", "1125899906842624"),
        ("1Ei", "1152921504606846976"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("12e-1", "1.2"),
        ("+.5", "0.5"),
        ("5.", "5"),
        ("-1", "-1"),
    ],
)
def test_every_way_to_write_a_quantity(written: Any, meant: str) -> None:
    assert values.quantity(written) == Decimal(meant)


@pytest.mark.parametrize(
    "written", ["", " ", "Gi", "1 Gi", "1gi", "1KiB", "one", "1e", "0x10", "1_000", "٣", None, True, [], {}]
)
def test_what_is_no_quantity_is_none(written: Any) -> None:
    assert values.quantity(written) is None


def test_memory_is_in_gib_and_all_else_in_its_own_unit() -> None:
    assert values.amount("memory", "512Mi") == Decimal("0.5")
    assert values.amount("cpu", "250m") == Decimal("0.25")
    assert values.amount("nvidia.com/gpu", "4") == Decimal(4)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-11-30T10:00:00Z", "2026-11-30T10:00:00+00:00"),
        ("2026-11-30T10:00:00.123456789Z", "2026-11-30T10:00:00.123456+00:00"),
        ("2026-11-30T12:00:00+02:00", "2026-11-30T10:00:00+00:00"),
    ],
)
def test_times_are_in_utc(written: str, meant: str) -> None:
    moment = values.time(written)
    assert moment is not None
    assert moment.isoformat() == meant


@pytest.mark.parametrize(
    "written", [None, "", "soon", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", 0, "0001-01-01T00:00:00+23:59"]
)
def test_no_time_is_no_time(written: Any) -> None:
    assert values.time(written) is None


def requests(**amounts: str) -> dict[str, Any]:
    return {"resources": {"requests": amounts}}


def test_a_pod_holds_the_most_of_what_it_needs_at_any_moment() -> None:
    assert facts.effective_requests(
        {
            "initContainers": [requests(cpu="1", memory="8Gi"), requests(cpu="3")],
            "containers": [requests(cpu="2", memory="1Gi"), requests(cpu="500m", memory="1Gi")],
        }
    ) == {"cpu": Decimal(3), "memory": Decimal(8)}


def test_a_helper_that_runs_beside_the_others_counts_with_all_of_them() -> None:
    helper = requests(cpu="1") | {"restartPolicy": "Always"}
    assert facts.effective_requests(
        {"initContainers": [helper, requests(cpu="4")], "containers": [requests(cpu="2")], "overhead": {"cpu": "250m"}}
    ) == {"cpu": Decimal("5.25")}


def test_limits_count_where_nothing_is_requested_and_the_pods_own_amount_counts_first() -> None:
    container = {
        "resources": {
            "limits": {"nvidia.com/gpu": "2", "cpu": "4", "ephemeral-storage": "1Gi"},
            "requests": {"cpu": "1"},
        }
    }
    assert facts.effective_requests({"containers": [container]}) == {"nvidia.com/gpu": Decimal(2), "cpu": Decimal(1)}
    assert facts.effective_requests({"containers": [container], **requests(cpu="6")})["cpu"] == Decimal(6)


def test_a_restarted_container_has_two_lives() -> None:
    last = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-30T10:00:00Z"}}
    now = {"running": {"startedAt": "2026-11-30T10:00:05Z"}}
    status = {"containerStatuses": [{"name": "main", "restartCount": 3, "state": now, "lastState": last}]}
    lives = facts.pod_facts({"status": status}).containers
    assert [(life.restart, life.state, life.exit_code) for life in lives] == [
        (2, "terminated", 1),
        (3, "running", None),
    ]


def test_a_deletion_was_asked_for_before_its_grace() -> None:
    metadata = {"deletionTimestamp": "2026-11-30T10:00:30Z", "deletionGracePeriodSeconds": 30}
    assert facts.pod_facts({"metadata": metadata}).deletion_requested_at == at("2026-11-30T10:00:00")


@pytest.mark.parametrize(
    ("workloads", "cluster_queue"),
    [
        ([("a", "2026-11-30T10:00:00Z", None), ("b", "2026-11-30T10:00:05Z", None)], "b"),
        ([("b", "2026-11-30T10:00:05Z", "2026-11-30T10:00:06Z"), ("a", "2026-11-30T10:00:00Z", None)], "a"),
    ],
)
def test_of_several_workloads_the_youngest_that_stays_counts(
    workloads: list[tuple[str, str, str | None]], cluster_queue: str
) -> None:
    story = copy.deepcopy(RECORDED["never"])
    [model] = story["workloads"]
    story["workloads"] = []
    for name, created, deleted in workloads:
        made = copy.deepcopy(model)
        made["metadata"] |= {"uid": name, "name": name, "creationTimestamp": created, "deletionTimestamp": deleted}
        made["status"]["admission"] = {"clusterQueue": name}
        story["workloads"].append(made)
    found = told(story).workload
    assert found is not None
    assert found.cluster_queue == cluster_queue
