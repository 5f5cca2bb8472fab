"""A team's place in the cluster is made once, and again when it turns out to be missing."""

import pytest

from portal.clusters.specs import PassingError
from portal.quotas.models import LocalQueue
from portal.quotas.services import ensure_provisioned, forget_provisioned, local_queue
from portal.teams.models import Team
from tests import factories
from tests.jobs.cluster import ClusterDouble


def test_a_team_has_one_local_queue_for_each_cluster_queue(site: factories.Site, team: Team) -> None:
    first = local_queue(team=team, cluster_queue=site.gpu)
    assert local_queue(team=team, cluster_queue=site.gpu) == first
    assert LocalQueue.objects.count() == 1


def test_all_queues_of_the_team_are_made_together(cluster: ClusterDouble, site: factories.Site, team: Team) -> None:
    gpu, cpu = (local_queue(team=team, cluster_queue=queue) for queue in (site.gpu, site.cpu))
    ensure_provisioned(gpu)
    ensure_provisioned(gpu)
    assert cluster.calls == ["provision"]
    assert cluster.spaces["bt-vision"].queues == (("cpu", "cpu"), ("gpu", "gpu"))
    cpu.refresh_from_db()
    assert cpu.provisioned_at is not None


def test_a_failure_leaves_it_to_be_made(cluster: ClusterDouble, site: factories.Site, team: Team) -> None:
    queue = local_queue(team=team, cluster_queue=site.gpu)
    cluster.fail("provision", PassingError("down"))
    with pytest.raises(PassingError):
        ensure_provisioned(queue)
    queue.refresh_from_db()
    assert queue.provisioned_at is None


def test_forgetting_concerns_the_whole_place_of_the_team(
    cluster: ClusterDouble, site: factories.Site, team: Team, other_team: Team
) -> None:
    gpu, cpu = (local_queue(team=team, cluster_queue=queue) for queue in (site.gpu, site.cpu))
    other = local_queue(team=other_team, cluster_queue=site.gpu)
    ensure_provisioned(gpu)
    ensure_provisioned(other)
    forget_provisioned(gpu)
    for queue in (cpu, other):
        queue.refresh_from_db()
    assert (cpu.provisioned_at, other.provisioned_at is not None) == (None, True)
    ensure_provisioned(gpu)
    assert cluster.calls.count("provision") == 3
