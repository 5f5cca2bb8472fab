"""A team gets its place in the cluster, and keeps it as it should be. Against a FAKE API server."""

import pytest

from portal.clusters.kube.backend import KubeBackend
from portal.clusters.specs import PassingError, PermanentError, QueueSnapshot
from tests.clusters.kube.fake import FakeApi, status
from tests.clusters.kube.stories import NAMESPACE, SPACE

NAMESPACE_PATH = f"/api/v1/namespaces/{NAMESPACE}"


def test_everything_of_a_space_is_applied_with_the_namespace_first(api: FakeApi, backend: KubeBackend) -> None:
    backend.provision(SPACE)
    assert [path for _, path, _ in api.bodies] == [
        NAMESPACE_PATH,
        f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies/beamtime-no-ingress",
        f"/api/v1/namespaces/{NAMESPACE}/resourcequotas/beamtime-jobs",
        f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/localqueues/gpu",
        f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/localqueues/cpu",
    ]
    assert {method for method, _, _ in api.bodies} == {"PATCH"}


def test_it_is_server_side_apply_under_our_name(api: FakeApi, backend: KubeBackend) -> None:
    asked = []
    api.hook = lambda request: asked.append((request.method, dict(request.query), request.content_type))
    backend.provision(SPACE)
    assert set(map(str, asked[1:])) == {
        str(("PATCH", {"fieldManager": "beamtime", "force": "true"}, "application/apply-patch+yaml"))
    }


def test_a_repeat_is_welcome(backend: KubeBackend) -> None:
    backend.provision(SPACE)
    backend.provision(SPACE)


def test_another_portals_namespace_is_not_taken_over(api: FakeApi, backend: KubeBackend) -> None:
    metadata = {"name": NAMESPACE, "namespace": "", "labels": {"beamtime/instance": "the-other"}}
    api.put("namespaces", {"metadata": metadata})
    with pytest.raises(PermanentError, match="the-other"):
        backend.provision(SPACE)
    assert api.bodies == []


def test_a_namespace_on_its_way_out_is_waited_for(api: FakeApi, backend: KubeBackend) -> None:
    metadata = {"name": NAMESPACE, "namespace": "", "labels": {"beamtime/instance": "beamtime"}}
    api.put("namespaces", {"metadata": metadata, "status": {"phase": "Terminating"}})
    with pytest.raises(PassingError, match="being deleted"):
        backend.provision(SPACE)


def test_a_cluster_without_kueue_is_said_to_be_one(api: FakeApi, backend: KubeBackend) -> None:
    api.hook = lambda request: status(404, "NotFound") if "localqueues" in request.path else None
    with pytest.raises(PassingError, match="Kueue"):
        backend.provision(SPACE)


def test_a_local_queue_of_another_cluster_queue_is_refused_with_the_clusters_words(
    api: FakeApi, backend: KubeBackend
) -> None:
    api.hook = lambda request: status(422, "Invalid", "field is immutable") if "localqueues" in request.path else None
    with pytest.raises(PermanentError, match="apply the LocalQueue gpu: field is immutable"):
        backend.provision(SPACE)


def test_the_queues_themselves_are_not_ours_to_write(backend: KubeBackend) -> None:
    with pytest.raises(PermanentError, match="Kueue"):
        backend.write_queues(QueueSnapshot((), ()))
