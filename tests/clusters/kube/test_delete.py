"""Cancelled means gone: the Job and every pod of it, and never somebody else's. Against a FAKE API server."""

import pytest

from portal.clusters.kube.backend import KubeBackend
from portal.clusters.specs import ObjectRef, PassingError, PermanentError
from tests.clusters.kube.fake import FakeApi, status
from tests.clusters.kube.stories import NAME, NAMESPACE, job_object, make_spec, pod_object


def ref(uid: str = "") -> ObjectRef:
    return ObjectRef(cluster="main", namespace=NAMESPACE, name=NAME, uid=uid)


def pod(api: FakeApi, uid: str) -> dict[str, object]:
    made = pod_object(uid=uid)
    made["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] = "job-uid"
    api.put("pods", made)
    return made


@pytest.mark.parametrize("uid", ["", "job-uid"])
def test_a_job_that_never_was_is_gone(backend: KubeBackend, uid: str) -> None:
    assert backend.delete(ref(uid))


@pytest.mark.parametrize("uid", ["", "job-uid"])
def test_a_waiting_job_is_gone_at_once(api: FakeApi, backend: KubeBackend, uid: str) -> None:
    api.put("jobs", job_object())
    assert backend.delete(ref(uid))
    assert api.objects == {}


@pytest.mark.parametrize("uid", ["", "job-uid"])
def test_pods_that_still_end_still_count(api: FakeApi, backend: KubeBackend, uid: str) -> None:
    api.put("jobs", job_object())
    ending = pod(api, "pod-a")
    assert not backend.delete(ref(uid))
    assert not backend.delete(ref(uid))
    api.remove("pods", ending)
    assert backend.delete(ref(uid))


def test_pods_go_with_their_job(api: FakeApi, backend: KubeBackend) -> None:
    api.put("jobs", job_object())
    backend.delete(ref("job-uid"))
    [(_, _, body)] = api.bodies
    assert body == {"propagationPolicy": "Background", "preconditions": {"uid": "job-uid"}}


def test_a_later_job_of_the_same_name_is_left_alone(api: FakeApi, backend: KubeBackend) -> None:
    api.put("jobs", job_object(uid="a-later-one"))
    assert backend.delete(ref("job-uid"))
    assert len(api.objects) == 1


def test_a_strangers_job_of_the_same_name_is_left_alone(api: FakeApi, backend: KubeBackend) -> None:
    stranger = job_object()
    stranger["metadata"]["labels"] = {}
    api.put("jobs", stranger)
    assert backend.delete(ref())
    assert len(api.objects) == 1


def test_trouble_is_passing_and_refusal_is_not(api: FakeApi, backend: KubeBackend) -> None:
    api.hook = lambda request: status(503, "ServiceUnavailable")
    with pytest.raises(PassingError):
        backend.delete(ref())
    api.hook = lambda request: status(405, "MethodNotAllowed")
    with pytest.raises(PermanentError):
        backend.delete(ref("job-uid"))


def test_deleting_what_was_created(api: FakeApi, backend: KubeBackend) -> None:
    created = backend.create(make_spec(), {})
    assert backend.delete(ref(created.uid))
