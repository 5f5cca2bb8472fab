"""The portal knows what the cluster knows, through every break of the line.

Against a FAKE API server: a real one tears no line, sends no 410 on demand and never leaves out a field.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from portal.clusters.kube import observer, reflector
from portal.clusters.kube.backend import KubeBackend
from portal.clusters.specs import AttemptFacts
from tests.clusters.kube.fake import FakeApi, status
from tests.clusters.kube.stories import JOB_ID, NAME, NAMESPACE, job_object, make_spec, pod_object, workload_object
from tests.clusters.kube.watching import Watching

KEY = f"{NAMESPACE}/{NAME}"
PATHS = ("/apis/batch/v1/jobs", "/apis/kueue.x-k8s.io/v1beta2/workloads", "/api/v1/pods")


def phase(facts: AttemptFacts) -> str:
    return facts.pods[0].phase if facts.pods else ""


def in_phase(wanted: str) -> Callable[[AttemptFacts], bool]:
    return lambda facts: phase(facts) == wanted


def lists(api: FakeApi, path: str) -> int:
    """How often a kind was asked for, watches included."""
    return api.requests[f"GET {path}"]


def test_job_workload_and_pods_are_one_story(api: FakeApi, watching: Watching) -> None:
    api.put("jobs", job_object())
    api.put("workloads", workload_object(admission={"clusterQueue": "gpu"}))
    api.put("pods", pod_object(phase="Running"))
    watching.start()

    facts = watching.until("it runs", lambda facts: phase(facts) == "Running")

    assert watching.told[0] == facts, "never a half-known job first"
    assert (facts.job_id, facts.attempt, facts.namespace, facts.cluster) == (JOB_ID, 1, NAMESPACE, "main")
    assert facts.job is not None
    assert facts.job.suspended
    assert facts.workload is not None
    assert facts.workload.cluster_queue == "gpu"
    assert not facts.job_gone


def test_each_change_is_told(api: FakeApi, watching: Watching) -> None:
    watching.start()
    api.put("jobs", job_object())
    watching.until("it is there", lambda facts: facts.job)
    for each in ("Pending", "Running", "Succeeded"):
        api.put("pods", pod_object(phase=each))
        watching.until(f"it is {each}", in_phase(each))


def test_workloads_of_others_are_nobodys_attempt(api: FakeApi, watching: Watching) -> None:
    api.put("workloads", workload_object(make_spec(name="somebody-elses")))
    api.put("jobs", job_object())
    watching.start()
    watching.until("ours is there", lambda facts: facts.job)
    assert {facts.name for facts in watching.told} == {NAME}


def test_an_older_workload_does_not_hide_its_successor(api: FakeApi, watching: Watching) -> None:
    old, new = workload_object(), workload_object()
    old["metadata"] |= {"name": "z-old", "uid": "old", "creationTimestamp": "2026-11-30T09:00:00Z"}
    api.put("jobs", job_object())
    api.put("workloads", new)
    api.put("workloads", old)
    watching.start()
    facts = watching.until("it is there", lambda facts: facts.workload)
    assert facts.workload is not None
    assert facts.workload.name == new["metadata"]["name"]


# --- deletion ------------------------------------------------------------------------------------------------------


def test_a_deleted_job_is_gone_with_its_last_facts(api: FakeApi, watching: Watching) -> None:
    api.put("jobs", job_object())
    watching.start()
    watching.until("it is there", lambda facts: facts.job)
    api.remove("jobs", job_object())
    facts = watching.until("it is gone", lambda facts: facts.job_gone)
    assert facts.job is not None
    assert facts.gone_at is not None


def test_a_job_that_lost_its_label_is_not_gone(api: FakeApi, watching: Watching) -> None:
    api.put("jobs", job_object())
    watching.start()
    watching.until("it is there", lambda facts: facts.job)

    bare = job_object()
    del bare["metadata"]["labels"]["beamtime/instance"]
    api.put("jobs", bare, event=False)
    api.say("jobs", "DELETED", job_object())  # what a watch with a selector is told
    looks = f"GET /apis/batch/v1/namespaces/{NAMESPACE}/jobs/{NAME}"
    end = time.monotonic() + 10
    while api.requests[looks] < 3 and time.monotonic() < end:
        time.sleep(0.01)
    assert api.requests[looks] >= 3, "it is looked at from time to time"
    assert not any(facts.job_gone for facts in watching.told)

    api.remove("jobs", bare, event=False)
    watching.until("it is gone now", lambda facts: facts.job_gone)


def test_a_pod_is_kept_with_its_last_facts_when_it_is_deleted(api: FakeApi, watching: Watching) -> None:
    api.put("jobs", job_object())
    api.put("pods", pod_object(phase="Running"))
    watching.start()
    watching.until("it runs", lambda facts: phase(facts) == "Running")

    api.remove("pods", pod_object(), deletionTimestamp="2026-11-30T11:00:30Z", deletionGracePeriodSeconds=30)

    facts = watching.until("the pod is gone", lambda facts: facts.pods[0].gone)
    [pod] = facts.pods
    assert pod.phase == "Running"
    assert pod.deletion_requested_at is not None
    assert pod.deletion_requested_at.isoformat() == "2026-11-30T11:00:00+00:00"
    assert not facts.job_gone


def test_a_job_is_over_only_when_its_pods_are_gone_too(api: FakeApi, watching: Watching) -> None:
    api.put("jobs", job_object())
    api.put("pods", pod_object(phase="Running"))
    watching.start()
    watching.until("it runs", lambda facts: phase(facts) == "Running")
    api.remove("jobs", job_object())
    watching.until("the Job is gone, the pod is not", lambda facts: facts.job_gone and not facts.pods[0].gone)
    api.remove("pods", pod_object())
    watching.until("both are gone", lambda facts: facts.job_gone and facts.pods[0].gone)


# --- what should be there ------------------------------------------------------------------------------------------


def test_an_expected_job_that_is_not_there_is_told_as_gone(
    api: FakeApi, backend: KubeBackend, watching: Watching
) -> None:
    backend.expect({KEY: (JOB_ID, 1)})
    watching.start()
    facts = watching.until("it is missing", lambda facts: facts.job_gone)
    assert (facts.job_id, facts.attempt, facts.job) == (JOB_ID, 1, None)


def test_a_job_expected_later_is_asked_for_too(api: FakeApi, backend: KubeBackend, watching: Watching) -> None:
    api.put("jobs", job_object(make_spec(name="another", job_id="other")))
    watching.start()
    watching.until("the watch is on", lambda facts: facts.job, name="another")
    backend.expect({KEY: (JOB_ID, 1)})
    watching.until("it is missing", lambda facts: facts.job_gone)


def test_an_expected_job_that_the_list_just_missed_is_not_gone(
    api: FakeApi, backend: KubeBackend, watching: Watching
) -> None:
    api.put("jobs", job_object())

    def empty_list(request: web.Request) -> Any:
        if request.path == PATHS[0] and not request.query.get("watch"):
            return web.json_response({"metadata": {"resourceVersion": "5000"}, "items": []})
        return None

    api.hook = empty_list
    backend.expect({KEY: (JOB_ID, 1)})
    watching.start()
    facts = watching.until("it is there", lambda facts: facts.job)
    assert not facts.job_gone
    assert not any(each.job_gone for each in watching.told)


# --- trouble -------------------------------------------------------------------------------------------------------


def test_a_torn_line_is_not_lost(api: FakeApi, watching: Watching) -> None:
    torn: list[str] = []

    async def tear_once(request: web.Request) -> web.StreamResponse | None:
        if request.path != PATHS[2] or not request.query.get("watch") or torn:
            return None
        response = web.StreamResponse()
        await response.prepare(request)
        line = json.dumps({"type": "ADDED", "object": pod_object(phase="Running")}).encode()
        await response.write(line[: len(line) // 2])
        torn.append(request.path)
        return response

    api.hook = tear_once
    api.put("jobs", job_object())
    watching.start()
    watching.until("the line is torn", lambda facts: torn)
    assert phase(watching.told[-1]) == ""
    api.put("pods", pod_object(phase="Running"))
    watching.until("it runs", lambda facts: phase(facts) == "Running")


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_an_event_may_come_in_any_pieces(api: FakeApi, watching: Watching, size: int) -> None:
    api.put("jobs", job_object())
    spec = make_spec(display_name="Größe 数学 😀")
    line = (
        json.dumps({"type": "ADDED", "object": pod_object(spec, phase="Running")}, ensure_ascii=False).encode() + b"\n"
    )

    async def dribble(request: web.Request) -> web.StreamResponse | None:
        if request.path != PATHS[2] or not request.query.get("watch"):
            return None
        response = web.StreamResponse()
        await response.prepare(request)
        for at in range(0, len(line), size):
            await response.write(line[at : at + size])
            await asyncio.sleep(0)
        await asyncio.sleep(10)
        return response

    api.hook = dribble
    watching.start()
    watching.until("it runs", lambda facts: phase(facts) == "Running")


@pytest.mark.parametrize("form", ["status", "event"])
def test_410_in_either_form_lists_anew_and_finds_what_went(api: FakeApi, watching: Watching, form: str) -> None:
    others = [make_spec(name=f"bt-{n}-1", job_id=f"job-{n}") for n in range(3)]
    for number, spec in enumerate(others):
        api.put("jobs", job_object(spec, uid=f"uid-{number}"))
    watching.start()
    for spec in others:
        watching.until("it is there", lambda facts: facts.job, name=spec.name)

    # Deleted and changed in the gap, without a word.
    api.remove("jobs", job_object(others[0]), event=False)
    api.put("jobs", job_object(others[1], uid="uid-1", active=1), event=False)
    if form == "event":
        api.say("jobs", "ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
    else:
        api.forget_history()
        api.cut("jobs")

    watching.until("the first is gone", lambda facts: facts.job_gone, name=others[0].name)
    watching.until("the second has changed", lambda facts: facts.job and facts.job.active == 1, name=others[1].name)
    third = watching.last(others[2].name)
    assert third is not None
    assert not third.job_gone


def test_a_line_that_is_nonsense_each_time_leads_to_a_fresh_list(api: FakeApi, watching: Watching) -> None:
    api.put("jobs", job_object())
    watching.start()
    watching.until("it is there", lambda facts: facts.job)
    api.utter("jobs", b"{not json}\n")
    api.put("jobs", job_object(active=1))
    watching.until("it has changed", lambda facts: facts.job and facts.job.active == 1)


def test_lists_are_paced_when_every_version_is_too_old(
    api: FakeApi, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "RELIST_AT_MOST_EVERY", 0.5)
    api.hook = lambda request: status(410, "Expired") if request.query.get("watch") else None
    api.put("jobs", job_object())
    watching.start()
    watching.until("it is there", lambda facts: facts.job)
    time.sleep(1.2)
    assert lists(api, PATHS[0]) <= 8  # a list and a watch, at most three or four times


def test_a_silent_server_is_noticed_and_left(api: FakeApi, watching: Watching) -> None:
    api.put("jobs", job_object())
    watching.start()
    watching.until("it is there", lambda facts: facts.job)

    async def say_nothing(request: web.Request) -> None:
        await asyncio.sleep(60)

    # The open watches stay open and say nothing more, as those of a stopped server do.
    events, api._events = api._events, []
    api.hook = say_nothing
    before = {path: lists(api, path) for path in PATHS}
    end = time.monotonic() + 10
    while any(lists(api, path) == before[path] for path in PATHS) and time.monotonic() < end:
        time.sleep(0.01)
    assert all(lists(api, path) > before[path] for path in PATHS), "every watch dials anew"

    api.hook = None
    api._events = events
    api.put("pods", pod_object(phase="Running"))
    watching.until("it runs", lambda facts: phase(facts) == "Running")


def test_a_server_that_is_away_is_waited_for_and_logged_once(
    api: FakeApi, watching: Watching, caplog: pytest.LogCaptureFixture
) -> None:
    api.put("jobs", job_object())
    watching.start()
    watching.until("it is there", lambda facts: facts.job)

    def break_off(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    api.hook = break_off
    for plural in ("jobs", "workloads", "pods"):
        api.cut(plural)
    time.sleep(1.5)
    api.put("pods", pod_object(phase="Running"))
    api.hook = None
    watching.until("it runs", lambda facts: phase(facts) == "Running")
    lost = [record for record in caplog.records if "the watch of pods is interrupted" in record.getMessage()]
    assert len(lost) == 1


def test_the_last_sign_of_life_can_be_read(api: FakeApi, backend: KubeBackend, watching: Watching) -> None:
    assert backend.last_heard is None
    api.put("jobs", job_object())
    watching.start()
    watching.until("it is there", lambda facts: facts.job)
    first = backend.last_heard
    assert first is not None
    end = time.monotonic() + 10
    while backend.last_heard == first and time.monotonic() < end:
        time.sleep(0.01)
    assert backend.last_heard > first, "also while nothing changes"


def test_large_clusters_are_listed_in_pages(api: FakeApi, watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "PAGE", 2)
    specs = [make_spec(name=f"bt-{n}-1", job_id=f"job-{n}") for n in range(5)]
    for number, spec in enumerate(specs):
        api.put("jobs", job_object(spec, uid=f"uid-{number}"))
    watching.start()
    for spec in specs:
        watching.until("it is there", lambda facts: facts.job, name=spec.name)


def test_workloads_that_cannot_be_listed_do_not_hide_the_pods(
    api: FakeApi, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "PATIENCE", 0.5)
    api.hook = lambda request: status(404, "NotFound") if request.path == PATHS[1] else None
    api.put("jobs", job_object())
    api.put("pods", pod_object(phase="Running"))
    watching.start()
    watching.until("it runs", lambda facts: phase(facts) == "Running")


# --- pace ----------------------------------------------------------------------------------------------------------


def test_an_attempt_that_never_stops_changing_is_told_of_all_the_same(api: FakeApi, watching: Watching) -> None:
    api.put("jobs", job_object())
    watching.start()
    watching.until("it is there", lambda facts: facts.job)
    told = len(watching.told)
    end = time.monotonic() + 1.0
    changes = 0
    while time.monotonic() < end:
        api.put("jobs", job_object(active=changes))
        changes += 1
        time.sleep(0.002)
    watching.until("the last change", lambda facts: facts.job and facts.job.active == changes - 1)
    told = len(watching.told) - told
    assert told >= 10, "changes that never pause are told while they last"
    assert told <= changes / 2, "and not one by one"


def test_an_older_object_does_not_undo_a_newer_one(api: FakeApi, watching: Watching) -> None:
    api.put("jobs", job_object())
    watching.start()
    watching.until("it is there", lambda facts: facts.job)
    old = job_object(version=5, active=99)
    new = job_object(version=999_999, active=1)
    api.say("jobs", "MODIFIED", new)
    api.say("jobs", "MODIFIED", old)
    api.put("pods", pod_object(phase="Running"))
    facts = watching.until("it runs", lambda facts: phase(facts) == "Running")
    assert facts.job is not None
    assert facts.job.active == 1


# --- nonsense ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": None, "object": None},
        {"type": "ADDED"},
        {"type": "ADDED", "object": []},
        {"type": "ADDED", "object": {"metadata": None}},
        {"type": "ADDED", "object": {"metadata": {"name": "x", "uid": None, "labels": None}}},
        {"type": "BOOKMARK", "object": {"metadata": {}}},
        {"type": "DELETED", "object": {"metadata": {"name": "never-seen", "namespace": "x", "uid": "never"}}},
        {"type": "SOMETHING NEW", "object": {"metadata": {"resourceVersion": "zzz"}}},
        {"type": "ERROR", "object": {"code": 500, "message": "etcd has no leader"}},
        [],
        "text",
        None,
    ],
    ids=json.dumps,
)
@pytest.mark.parametrize("kind", ["jobs", "pods", "workloads"])
def test_case_63_an_odd_event_breaks_no_watch(api: FakeApi, watching: Watching, event: Any, kind: str) -> None:
    api.put("jobs", job_object())
    watching.start()
    watching.until("it is there", lambda facts: facts.job)
    api.utter(kind, json.dumps(event).encode() + b"\n")
    api.put("pods", pod_object(phase="Running"))
    api.put("workloads", workload_object(admission={"clusterQueue": "gpu"}))
    api.put("jobs", job_object(active=1))
    watching.until(
        "all three are seen",
        lambda facts: phase(facts) == "Running" and facts.workload and facts.job and facts.job.active == 1,
    )
