"""The accounts in deploy/kubernetes may do what the portal does, and nothing else.

The portal's calls are written down in front of a FAKE API server; that a real one lets them through with these rights
is tested in tests/cluster.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from aiohttp import web

from portal.clusters.kube.backend import KubeBackend
from portal.clusters.specs import ContainerRef, ObjectRef
from tests.clusters.kube.fake import FakeApi
from tests.clusters.kube.stories import INSTANCE, NAME, NAMESPACE, SPACE, job_object, make_spec, pod_object
from tests.deploy.yamls import one

# (API group, resource, verb)
Right = tuple[str, str, str]


def granted(role: str) -> set[Right]:
    return {
        (group, resource, verb)
        for rule in one("ClusterRole", role)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def needed(request: web.Request) -> set[Right]:
    """The rights that a request needs, by the rules of Kubernetes' request attributes."""
    parts = request.path.strip("/").split("/")
    if parts[0] == "readyz":
        return set()
    group, parts = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    resource = "/".join([parts[0], *parts[2:]])
    if request.query.get("watch"):
        return {(group, resource, "watch")}
    reading = "get" if len(parts) > 1 else "list"
    verbs = {"GET": {reading}, "POST": {"create"}, "DELETE": {"delete"}, "PATCH": {"patch", "create"}}[request.method]
    return {(group, resource, verb) for verb in verbs}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[FakeApi]:
    with FakeApi(tmp_path) as fake:
        yield fake


@pytest.fixture
def used(api: FakeApi) -> set[Right]:
    """Fills itself with the rights that were needed."""
    rights: set[Right] = set()
    api.hook = lambda request: rights.update(needed(request))
    return rights


@pytest.fixture
def backend(api: FakeApi, used: set[Right]) -> KubeBackend:
    return KubeBackend(cluster="main", kubeconfig=api.kubeconfig, instance=INSTANCE)


def test_the_worker_may_do_what_it_does(backend: KubeBackend, used: set[Right]) -> None:
    spec = make_spec(secret_env=("TOKEN",))
    backend.provision(SPACE)
    backend.read_queues()
    backend.create(spec, {"TOKEN": "x"})
    backend.create(spec, {"TOKEN": "x"})
    backend.delete(ObjectRef(cluster="main", namespace=NAMESPACE, name=NAME))
    assert used == granted("beamtime-worker")


def test_the_watch_may_do_what_it_does(api: FakeApi, backend: KubeBackend, used: set[Right]) -> None:
    api.put("jobs", job_object())
    api.put("pods", pod_object(uid="pod-a"))
    backend.expect({f"{NAMESPACE}/bt-not-there-1": ("x", 1)})

    async def watch() -> None:
        async with aclosing(backend.observe()) as facts:
            async for each in facts:
                if each.job_gone:
                    break
        ref = ContainerRef(cluster="main", namespace=NAMESPACE, pod=f"{NAME}-pod-a", pod_uid="pod-a", container="main")
        async with aclosing(backend.read_log(ref, since=None, follow=True)) as chunks:
            await anext(chunks)

    asyncio.run(watch())
    end = time.monotonic() + 5
    while ("kueue.x-k8s.io", "workloads", "watch") not in used and time.monotonic() < end:
        time.sleep(0.01)
    assert used == granted("beamtime-watch")
