"""A submitted job becomes exactly one Job of the cluster, whatever happens to the connection.

Against a FAKE API server: a real one cannot be made to break a connection at the right moment.
"""

import asyncio
import base64
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from aiohttp import web

from portal.clusters.kube import connection, manifests
from portal.clusters.kube.backend import KubeBackend
from portal.clusters.specs import NameTaken, PassingError, PermanentError, SpaceMissing
from tests.clusters.kube.fake import FakeApi, status
from tests.clusters.kube.stories import INSTANCE, NAME, NAMESPACE, job_object, make_spec

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"


def stored(api: FakeApi, plural: str) -> list[dict[str, Any]]:
    return [thing for (kind, _, _), thing in api.objects.items() if kind == plural]


def test_a_job_is_made_suspended_in_its_queue(api: FakeApi, backend: KubeBackend) -> None:
    created = backend.create(make_spec(), {})

    [job] = stored(api, "jobs")
    assert created.uid == job["metadata"]["uid"]
    assert created.created_at.isoformat() == "2026-11-30T10:00:00+00:00"
    assert not created.adopted
    assert job["spec"]["suspend"] is True
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpu"
    assert stored(api, "secrets") == []


def test_what_is_made_is_what_the_preview_showed(api: FakeApi, backend: KubeBackend) -> None:
    backend.create(make_spec(), {})
    assert api.bodies == [("POST", JOBS, backend.manifests(make_spec())[0])]


def test_making_it_twice_adopts_the_first(api: FakeApi, backend: KubeBackend) -> None:
    first = backend.create(make_spec(), {})
    again = backend.create(make_spec(), {})
    assert (again.uid, again.adopted) == (first.uid, True)
    assert len(stored(api, "jobs")) == 1


def test_an_answer_that_never_arrives_is_made_up_for_by_the_repeat(api: FakeApi, backend: KubeBackend) -> None:
    def store_then_break(request: web.Request) -> Any:
        if request.method != "POST":
            return None
        api._create("jobs", NAMESPACE, api.bodies[-1][2])
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    api.hook = store_then_break
    with pytest.raises(PassingError):
        backend.create(make_spec(), {})

    api.hook = None
    assert backend.create(make_spec(), {}).adopted
    assert len(stored(api, "jobs")) == 1


def test_a_silent_server_is_given_up_in_time(
    api: FakeApi, backend: KubeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "WHOLE", 0.3)

    async def say_nothing(request: web.Request) -> None:
        await asyncio.sleep(60)

    api.hook = say_nothing
    began = time.monotonic()
    with pytest.raises(PassingError, match="did not answer"):
        backend.create(make_spec(), {})
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "label", [manifests.DIGEST_LABEL, manifests.JOB_LABEL, manifests.INSTANCE_LABEL, manifests.ATTEMPT_LABEL]
)
def test_a_strangers_job_of_that_name_is_not_ours(api: FakeApi, backend: KubeBackend, label: str) -> None:
    stranger = job_object()
    stranger["metadata"]["labels"][label] = "another"
    api.put("jobs", stranger)
    with pytest.raises(NameTaken, match="is not this one"):
        backend.create(make_spec(), {})


def test_a_missing_namespace_asks_for_the_space(api: FakeApi, backend: KubeBackend) -> None:
    api.hook = lambda request: status(404, "NotFound", 'namespaces "bt-vision" not found')
    with pytest.raises(SpaceMissing):
        backend.create(make_spec(), {})


def test_a_policy_that_misses_the_local_queue_asks_for_the_space(api: FakeApi, backend: KubeBackend) -> None:
    api.hook = lambda request: status(403, "Forbidden", 'admission webhook denied: LocalQueue "gpu" not found')
    with pytest.raises(SpaceMissing):
        backend.create(make_spec(), {})


TERMINATING = {"details": {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}}


@pytest.mark.parametrize(
    "answer",
    [
        status(408, "Timeout"),
        status(429, "TooManyRequests"),
        status(500, "InternalError", "failed calling webhook mjob.kb.io"),
        status(502, ""),
        status(503, "ServiceUnavailable"),
        status(504, "Timeout"),
        status(401, "Unauthorized"),
        status(409, "Conflict", "Operation cannot be fulfilled on resourcequotas"),
        status(403, "Forbidden", "jobs.batch is forbidden: exceeded quota: beamtime-jobs"),
        status(
            403, "Forbidden", 'jobs.batch is forbidden: User "x" cannot create resource "jobs" in API group "batch"'
        ),
        status(403, "Forbidden", "namespace bt-vision is being terminated", **TERMINATING),
    ],
    ids=lambda answer: str(answer.status),
)
def test_what_time_or_an_operator_mends_is_tried_again(
    api: FakeApi, backend: KubeBackend, answer: web.Response
) -> None:
    assert answer.body is not None
    api.hook = lambda request: web.Response(status=answer.status, body=answer.body, content_type="application/json")
    with pytest.raises(PassingError):
        backend.create(make_spec(), {})


@pytest.mark.parametrize(
    ("code", "reason"), [(400, "BadRequest"), (403, "Forbidden"), (413, "RequestEntityTooLarge"), (422, "Invalid")]
)
def test_what_the_cluster_refuses_for_good_says_why(api: FakeApi, backend: KubeBackend, code: int, reason: str) -> None:
    api.hook = lambda request: status(code, reason, "spec.template: the image is not allowed here")
    with pytest.raises(PermanentError, match="the image is not allowed here") as refused:
        backend.create(make_spec(), {})
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("headers", "details", "seconds"), [({"Retry-After": "7"}, {}, 7), ({}, {"retryAfterSeconds": 3}, 3)]
)
def test_the_clusters_own_waiting_time_is_kept(
    api: FakeApi, backend: KubeBackend, headers: dict[str, str], details: dict[str, int], seconds: int
) -> None:
    body = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "slow down", "details": details}
    api.hook = lambda request: web.json_response(body, status=429, headers=headers)
    with pytest.raises(PassingError) as passing:
        backend.create(make_spec(), {})
    assert passing.value.retry_after == seconds


@pytest.mark.parametrize("body", [b"", b"<html>Bad Gateway</html>", b"[]", b'{"message": null}', b"\xff\xfe"])
def test_a_proxys_nonsense_is_not_a_crash(api: FakeApi, backend: KubeBackend, body: bytes) -> None:
    api.hook = lambda request: web.Response(status=502, body=body)
    with pytest.raises(PassingError):
        backend.create(make_spec(), {})


def test_no_server_at_all_is_passing(api: FakeApi) -> None:
    port, api.port = api.port, 1
    nobody = KubeBackend(cluster="main", kubeconfig=api.kubeconfig, instance=INSTANCE)
    api.port = port
    with pytest.raises(PassingError):
        nobody.create(make_spec(), {})


# --- secrets -------------------------------------------------------------------------------------------------------


def test_a_secret_arrives_beside_its_job_and_belongs_to_it(api: FakeApi, backend: KubeBackend) -> None:
    created = backend.create(make_spec(secret_env=("TOKEN",)), {"TOKEN": "hush $x"})
    [secret] = stored(api, "secrets")
    assert secret["metadata"]["name"] == NAME
    assert secret["metadata"]["ownerReferences"][0]["uid"] == created.uid
    assert base64.b64decode(secret["data"]["TOKEN"]) == b"hush $x"
    assert "hush" not in str(stored(api, "jobs"))


def test_a_death_between_job_and_secret_is_made_up_for(api: FakeApi, backend: KubeBackend) -> None:
    spec = make_spec(secret_env=("TOKEN",))
    api.hook = lambda request: status(503, "ServiceUnavailable") if request.path == SECRETS else None
    with pytest.raises(PassingError):
        backend.create(spec, {"TOKEN": "hush"})
    assert stored(api, "secrets") == []

    api.hook = None
    created = backend.create(spec, {"TOKEN": "hush"})
    assert created.adopted
    [secret] = stored(api, "secrets")
    assert secret["metadata"]["ownerReferences"][0]["uid"] == created.uid
    # And once more, with both there.
    assert backend.create(spec, {"TOKEN": "hush"}).adopted


def test_a_refused_secret_leaves_no_half_job_and_is_not_quoted(api: FakeApi, backend: KubeBackend) -> None:
    api.hook = lambda request: status(422, "Invalid", "data[TOKEN]: hush is bad") if request.path == SECRETS else None
    with pytest.raises(PermanentError) as refused:
        backend.create(make_spec(secret_env=("TOKEN",)), {"TOKEN": "hush"})
    assert "hush" not in str(refused.value)
    assert stored(api, "jobs") == []


def test_a_secret_without_its_value_makes_nothing(api: FakeApi, backend: KubeBackend) -> None:
    with pytest.raises(PermanentError, match="TOKEN"):
        backend.create(make_spec(secret_env=("TOKEN",)), {})
    assert api.bodies == []


def test_many_threads_make_each_job_once(api: FakeApi, backend: KubeBackend) -> None:
    specs = [make_spec(name=f"bt-{n}-1", job_id=f"job-{n}") for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda spec: backend.create(spec, {}), specs + specs))
    assert len(stored(api, "jobs")) == 40
    assert sum(created.adopted for created in made) == 40
