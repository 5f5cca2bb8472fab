"""Jobs as processes of the portal's own user: only where somebody wanted that."""

from collections.abc import Iterator

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from portal.clusters.gateway import backend_of, forget_backends
from portal.clusters.models import BackendKind, Cluster
from portal.clusters.policy import backend_for
from portal.clusters.services import ensure_cluster
from portal.clusters.specs import PermanentError


@pytest.fixture(autouse=True)
def _fresh_backends() -> Iterator[None]:
    forget_backends()
    yield
    forget_backends()


def ids(settings: Settings) -> list[str]:
    return [message.id for message in run_checks(tags=["beamtime"]) if message.id]


def test_the_backend_is_refused_where_it_was_not_allowed(settings: Settings) -> None:
    settings.BEAMTIME_ALLOW_LOCAL_BACKEND = False
    with pytest.raises(PermanentError, match="BEAMTIME_ALLOW_LOCAL_BACKEND"):
        backend_of(Cluster(name="default", backend=BackendKind.LOCAL))


def test_a_server_without_a_cluster_fails_its_check(settings: Settings) -> None:
    settings.BEAMTIME_CLUSTER_BACKEND = "auto"
    settings.BEAMTIME_CLUSTER_KUBECONFIG = ""
    settings.BEAMTIME_ALLOW_LOCAL_BACKEND = False
    assert "beamtime.E001" in ids(settings)
    settings.BEAMTIME_CLUSTER_KUBECONFIG = "/etc/kubeconfig"
    assert "beamtime.E001" not in ids(settings)


def test_the_embedded_mode_may_not_answer_to_other_machines(settings: Settings) -> None:
    settings.BEAMTIME_LOOPBACK_ONLY = True
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
    assert "beamtime.E002" not in ids(settings)
    settings.ALLOWED_HOSTS = ["localhost", "portal.example.org"]
    assert "beamtime.E002" in ids(settings)
    settings.BEAMTIME_LOOPBACK_ONLY = False
    assert "beamtime.E002" not in ids(settings)


@pytest.mark.parametrize(
    ("choice", "kubeconfig", "in_cluster", "kind"),
    [
        ("auto", "", False, BackendKind.LOCAL),
        ("auto", "/etc/kubeconfig", False, BackendKind.KUBE),
        ("auto", "", True, BackendKind.KUBE),
        ("local", "/etc/kubeconfig", True, BackendKind.LOCAL),
        ("kube", "", False, BackendKind.KUBE),
    ],
)
def test_auto_means_kubernetes_where_there_is_a_way_to_it(
    choice: str, kubeconfig: str, in_cluster: bool, kind: BackendKind
) -> None:
    assert backend_for(choice, kubeconfig=kubeconfig, service_account=in_cluster) == kind


@pytest.mark.django_db
def test_the_row_of_the_cluster_follows_the_settings(settings: Settings) -> None:
    settings.BEAMTIME_CLUSTER_NAME = "lab"
    settings.BEAMTIME_CLUSTER_BACKEND = "local"
    first = ensure_cluster()
    assert (first.name, first.backend) == ("lab", "local")
    settings.BEAMTIME_CLUSTER_BACKEND = "kube"
    again = ensure_cluster()
    assert again.pk == first.pk
    assert again.backend == "kube"
