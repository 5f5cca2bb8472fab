"""Which queues a team has, and how much they can ever give."""

from decimal import Decimal
from typing import Any

import pytest

from portal.clusters.models import BackendKind, Cluster, ResourceFlavor
from portal.core.clock import now
from portal.quotas import selectors
from portal.quotas.models import ClusterQueue, FlavorQuota
from portal.teams.models import Team
from tests import factories


def _names(team: Team) -> list[str]:
    return [queue.name for queue in selectors.queues_open_to(team)]


def test_queues_open_to_all_or_to_the_team(site: factories.Site, team: Team, other_team: Team) -> None:
    night = ClusterQueue.objects.create(cluster=site.cluster, name="night", open_to_all=False)
    night.teams.add(team)
    assert _names(team) == ["cpu", "gpu", "night"]
    assert _names(other_team) == ["cpu", "gpu"]


def test_removed_queues_and_those_of_other_clusters_are_not_open(site: factories.Site, team: Team) -> None:
    elsewhere = Cluster.objects.create(name="elsewhere", backend=BackendKind.KUBE)
    ClusterQueue.objects.create(cluster=elsewhere, name="far")
    ClusterQueue.objects.filter(pk=site.gpu.pk).update(removed_at=now())
    assert _names(team) == ["cpu"]


@pytest.fixture
def cohort(site: factories.Site) -> factories.Site:
    """`gpu` (4 H100) and `lender` (6 H100) share a cohort."""
    lender = ClusterQueue.objects.create(cluster=site.cluster, name="lender", cohort="campus")
    FlavorQuota.objects.create(cluster_queue=lender, flavor=site.gpu_flavor, resource="nvidia.com/gpu", nominal=6)
    site.gpu.cohort = "campus"
    site.gpu.save()
    return site


def test_without_a_cohort_the_nominal_quota_is_the_most(site: factories.Site, team: Team) -> None:
    assert selectors.book_of(team).largest(site.gpu, "nvidia.com/gpu") == 4


def test_with_a_cohort_the_others_quota_may_be_borrowed(cohort: factories.Site, team: Team) -> None:
    assert selectors.book_of(team).largest(cohort.gpu, "nvidia.com/gpu", "h100") == 10


@pytest.mark.parametrize(("limit", "most"), [(0, 4), (1, 5), (6, 10), (100, 10)])
def test_the_borrowing_limit_bounds_it_and_so_does_what_there_is(
    cohort: factories.Site, team: Team, limit: int, most: int
) -> None:
    FlavorQuota.objects.filter(cluster_queue=cohort.gpu).update(borrowing_limit=limit)
    assert selectors.book_of(team).largest(cohort.gpu, "nvidia.com/gpu") == most


def test_a_job_takes_a_resource_from_one_flavor_so_flavors_do_not_add_up(site: factories.Site, team: Team) -> None:
    a100 = ResourceFlavor.objects.create(cluster=site.cluster, name="a100", gpu_model="NVIDIA A100")
    FlavorQuota.objects.create(cluster_queue=site.gpu, flavor=a100, resource="nvidia.com/gpu", nominal=8)
    assert selectors.book_of(team).largest(site.gpu, "nvidia.com/gpu") == 8
    assert selectors.book_of(team).largest(site.gpu, "nvidia.com/gpu", "h100") == 4


def test_a_resource_that_the_queue_does_not_cover_is_none_and_a_quota_of_zero_is_zero(
    site: factories.Site, team: Team
) -> None:
    assert selectors.book_of(team).largest(site.cpu, "nvidia.com/gpu") is None
    assert selectors.book_of(team).largest(site.gpu, "nvidia.com/gpu", "b200") is None
    FlavorQuota.objects.filter(cluster_queue=site.cpu, resource="cpu").update(nominal=0)
    assert selectors.book_of(team).largest(site.cpu, "cpu") == 0


def test_gpu_flavors_say_what_is_behind_them(site: factories.Site, team: Team, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(2):
        (row,) = selectors.book_of(team).gpu_flavors(site.gpu)
    assert (row.name, row.gpu_model, row.pretended) == ("h100", "NVIDIA H100", True)
    assert row.nominal == row.most == 4
    assert row.label == "NVIDIA H100 (pretended)"
    assert selectors.book_of(team).gpu_flavors(site.cpu) == []


def test_everything_that_submitting_needs_is_two_queries(
    cohort: factories.Site, team: Team, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(2):
        book = selectors.book_of(team)
        for queue in book.queues:
            book.gpu_flavors(queue)
            book.largest(queue, "cpu")
    assert book.queue("none") is None
    found = book.queue("lender")
    assert found is not None
    assert book.largest(found, "nvidia.com/gpu") == Decimal(10)
