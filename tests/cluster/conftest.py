"""Fixtures for tests against a real Kubernetes with Kueue. This comment is their whole interface.

`cluster` (one for the whole run)
    the cluster, a `testbed.cluster.Cluster`: our own testbed, compiled and started if need be (the first time takes
    minutes), or the one of `$KUBECONFIG`. A testbed that is already up is used and left up; one that was started here
    is taken down at the end, unless BEAMTIME_CLUSTER_KEEP=1. Its ClusterQueues are `gpu` (4 nvidia.com/gpu, flavor
    `gpu-a`) and `cpu`; see `testbed.queues`.

    cluster.kubeconfig                      path, administrator's rights
    cluster.kubectl(*arguments)             -> str; raises KubectlError. Also stdin=, seconds=
    cluster.kubectl_json(*arguments)        -> parsed `-o json`
    cluster.apply(*objects)                 server-side apply
    cluster.wait_for(what, probe, seconds=) -> the first true answer of probe()

`own_cluster`
    the same object, for tests that break it; such tests are left out when `$KUBECONFIG` is set. After each test
    everything is put back: paused and dead components, the kubelet's configuration, the quotas.

    .pause(name) .resume(name)  with .paused(name):      SIGSTOP, SIGCONT
    .kill(name) .start(name) .state(name) .log(name)     SIGKILL; start and wait until it serves
        names: etcd containerd apiserver controller-manager scheduler kueue kubelet kwok
    .set_kubelet(containerLogMaxSize="64Ki")             restart the kubelet with fields changed
    .add_kwok_nodes(n, gpus=8)                           pretended nodes; their queue: testbed.queues.apply_kwok
    .import_image(path)                                  an OCI or docker archive
    .compact_etcd()                                      old resource versions are answered with 410

`namespace`
    the name of a new namespace with the LocalQueues `gpu` and `cpu`; deleted after the test.

`portal`
    the whole portal on this cluster, a `portal.Portal`: PostgreSQL, Redis, web, worker, beat and watch as processes
    of their own, with the rights of deploy/kubernetes. One for the whole run; after each test dead processes run
    again and no job is left active. Ask for it before `own_cluster`, so that it is cleared on a whole cluster.

    .submit(script, gpus=, **values) -> job id      .member, .outsider: API clients of people in two teams
    .wait_state(job, "running") .wait_log(job) .wait_text(job, b"…")        .cancel(job) .release(job)
    .kube_job(job) .kube_pods(job) .kube_log(pod)   what kubectl says       .kill(name) .start(name) .stop(name)

Images on the node: `registry.test/busybox:1` (sh), `registry.test/python:3` (python3 with its standard library; sh).
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from .portal import Portal
from .testbed import bed as beds
from .testbed import build, host, queues
from .testbed.cluster import Cluster, external_kubeconfig
from .testbed.configs import Options
from .testbed.paths import Layout


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Nobody wants the API server of a cluster in use stopped for half a minute."""
    if external_kubeconfig() is None:
        return
    breaking = [item for item in items if "own_cluster" in getattr(item, "fixturenames", ())]
    if breaking:
        config.hook.pytest_deselected(items=breaking)
        items[:] = [item for item in items if item not in breaking]


@pytest.fixture(scope="session")
def tell(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Say something to the person who waits, past pytest's capturing: the first compilation takes minutes."""
    reporter = pytestconfig.pluginmanager.get_plugin("terminalreporter")
    capture = pytestconfig.pluginmanager.get_plugin("capturemanager")

    def say(text: str) -> None:
        if reporter is not None and capture is not None:
            with capture.global_and_fixture_disabled():
                reporter.write_line(f"[cluster] {text}")

    return say


@pytest.fixture(scope="session")
def cluster(tell: Callable[[str], None]) -> Iterator[Cluster]:
    """See the top of this file."""
    external = external_kubeconfig()
    if external is not None:
        found = Cluster.of_kubeconfig(external)
        queues.apply(found)
        yield found
        return
    layout = Layout.default()
    with beds.exclusive(tell, wait=True):
        host.prepare(tell)
        running = beds.attach(layout, build.ensure(tell))
        bed = running or beds.up(layout, Options.from_environment(), tell)
        try:
            own = Cluster.of_bed(bed)
            queues.apply(own)
            yield own
        finally:
            if running is None and os.environ.get("BEAMTIME_CLUSTER_KEEP") != "1":
                beds.down(layout, tell)


@pytest.fixture
def own_cluster(cluster: Cluster) -> Iterator[Cluster]:
    """See the top of this file."""
    assert cluster.own, "tests that break the cluster are left out when KUBECONFIG is set"
    yield cluster
    cluster.heal()
    queues.apply(cluster)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """See the top of this file."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for queue in ("gpu", "cpu"):
        queues.local_queue(cluster, namespace=name, name=queue, cluster_queue=queue)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def running_portal(
    cluster: Cluster, tell: Callable[[str], None], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Portal]:
    """The whole portal with processes of its own, for all tests that want it; see `portal`."""
    began = time.monotonic()
    site = Portal(cluster, tmp_path_factory.mktemp("portal"))
    try:
        site.begin()
        tell(f"the portal is up after {time.monotonic() - began:.1f} s; its logs: {site.folder}")
        yield site
    finally:
        site.close()


@pytest.fixture
def portal(running_portal: Portal) -> Iterator[Portal]:
    """See the top of this file."""
    yield running_portal
    running_portal.clear()
