"""What deploy/kubernetes holds is taken by a real API server, and gives each process what it needs and no more."""

from __future__ import annotations

import pytest

from .portal import Portal
from .rights import BASE, Account, Base, kubeconfig
from .testbed.cluster import KubectlError


def test_the_api_server_takes_the_whole_base(portal: Portal) -> None:
    answer = portal.cluster.kubectl("apply", "--server-side", "--dry-run=server", "-k", str(BASE))

    taken = [line for line in answer.splitlines() if line.endswith("serverside-applied (server dry run)")]
    assert len(taken) == len(Base(portal.cluster).objects)


@pytest.mark.parametrize(
    ("process", "deed"),
    [
        ("worker", ["get", "secrets", "-A"]),
        ("worker", ["delete", "namespace", "kube-system"]),
        ("worker", ["create", "job", "mine", "--image=x", "-n", "default"]),
        ("watch", ["create", "job", "mine", "--image=x", "-n", "default"]),
        ("watch", ["delete", "job", "--all", "-A"]),
    ],
)
def test_no_process_can_do_more_than_its_work(portal: Portal, process: str, deed: list[str]) -> None:
    place = portal.folder / "one.kubeconfig"
    account = Base(portal.cluster).account_of(process)
    assert isinstance(account, Account)
    kubeconfig(portal.cluster, account, place)

    with pytest.raises(KubectlError, match=r"forbidden|Forbidden|namespaces only"):
        portal.cluster.kubectl("--kubeconfig", str(place), *deed)
