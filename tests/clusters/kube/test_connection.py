"""How the portal finds its cluster and stays signed in. Against a FAKE API server where one is needed."""

import asyncio
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from portal.clusters.kube import connection
from portal.clusters.kube.backend import KubeBackend
from portal.clusters.specs import ContainerRef, PassingError
from tests.clusters.kube.fake import FakeApi, status
from tests.clusters.kube.stories import INSTANCE, NAMESPACE, make_spec, pod_object


def test_who_never_speaks_to_a_cluster_does_not_load_the_client() -> None:
    script = (
        "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings'; import django; django.setup();"
        "import portal.clusters.gateway, sys;"
        "print(sorted({'kubernetes', 'aiohttp'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize("content", [None, "", "not: a kubeconfig", "{", "[]"])
def test_a_kubeconfig_that_cannot_be_read_is_named_and_waited_for(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    backend = KubeBackend(cluster="main", kubeconfig=str(path), instance=INSTANCE)
    with pytest.raises(PassingError, match=str(path)):
        backend.create(make_spec(), {})


def test_without_a_kubeconfig_it_is_the_pods_service_account() -> None:
    backend = KubeBackend(cluster="main", kubeconfig="", instance=INSTANCE)
    with pytest.raises(PassingError, match="service account"):
        backend.create(make_spec(), {})


class Door:
    """Lets in who has the present token."""

    def __init__(self, api: FakeApi) -> None:
        self.token = "first"
        api.hook = self.check

    def check(self, request: web.Request) -> Any:
        if request.headers.get("Authorization") == f"Bearer {self.token}":
            return None
        return status(401, "Unauthorized")


def test_a_new_token_in_the_kubeconfig_is_taken_up(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RELOAD_AT_MOST_EVERY", 0.0)
    door = Door(api)
    backend = KubeBackend(cluster="main", kubeconfig=api.write_kubeconfig({"token": "first"}), instance=INSTANCE)
    backend.create(make_spec(), {})

    door.token = "second"
    api.write_kubeconfig({"token": "second"})

    assert backend.create(make_spec(), {}).adopted


def test_a_token_that_stays_wrong_is_read_again_at_a_measured_pace(api: FakeApi) -> None:
    Door(api)
    backend = KubeBackend(cluster="main", kubeconfig=api.write_kubeconfig({"token": "wrong"}), instance=INSTANCE)
    for _ in range(3):
        with pytest.raises(PassingError):
            backend.create(make_spec(), {})
    # One reading each, no second try at once: the credentials are as fresh as can be.
    assert sum(api.requests.values()) == 3


def test_logs_take_up_a_new_token_too(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RELOAD_AT_MOST_EVERY", 0.0)
    door = Door(api)
    pod = pod_object(uid="pod-a")
    api.put("pods", pod)
    backend = KubeBackend(cluster="main", kubeconfig=api.write_kubeconfig({"token": "first"}), instance=INSTANCE)
    backend.read_queues()
    door.token = "second"
    api.write_kubeconfig({"token": "second"})
    ref = ContainerRef(
        cluster="main", namespace=NAMESPACE, pod=pod["metadata"]["name"], pod_uid="pod-a", container="main"
    )

    async def read() -> None:
        async with aclosing(backend.read_log(ref, since=None, follow=False)) as chunks:
            async for _ in chunks:
                pass

    with pytest.raises(PassingError):
        asyncio.run(read())
    asyncio.run(read())


def test_a_service_accounts_token_is_read_again_from_its_file(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader of the Kubernetes client, with its files and its pace put where a test can reach them."""
    from kubernetes.config import incluster_config

    (tmp_path / "token").write_text("first")
    (tmp_path / "ca.crt").write_text("not needed for http")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
    found = connection.Connection("")
    assert found.authorization() == {"Authorization": "bearer first"}
    (tmp_path / "token").write_text("second")
    monkeypatch.setattr(connection, "RELOAD_AT_MOST_EVERY", 0.0)
    assert found.reload()
    assert found.authorization() == {"Authorization": "bearer second"}
