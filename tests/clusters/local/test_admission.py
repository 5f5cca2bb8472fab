"""Who may start: Kueue's rules, with Kueue's words."""

from dataclasses import replace
from decimal import Decimal

from portal.clusters.local.admission import Ask, Holding, Verdict, decide
from portal.clusters.specs import FlavorQuota, FlavorSpec, QueueSnapshot, QueueSpec
from tests.clusters.local.machine import quotas

H100, A100 = FlavorSpec("h100"), FlavorSpec("a100")
GPU_QUEUE = QueueSpec("gpu", quotas("h100", gpus=4, cpu=16) + quotas("a100", gpus=2, cpu=8))
SITE = QueueSnapshot((H100, A100), (GPU_QUEUE,))


def ask(key: str, *, gpus: int = 1, cpu: str = "1", queue: str = "gpu", flavor: str = "") -> Ask:
    return Ask(key, queue, {"nvidia.com/gpu": Decimal(gpus), "cpu": Decimal(cpu)}, flavor)


def holding(flavor: str, *, gpus: int, cpu: str = "1", queue: str = "gpu") -> Holding:
    requests = {"nvidia.com/gpu": Decimal(gpus), "cpu": Decimal(cpu)}
    return Holding(queue, requests, {"nvidia.com/gpu": flavor, "cpu": flavor})


def only(verdicts: list[Verdict]) -> Verdict:
    [verdict] = verdicts
    return verdict


def test_the_first_flavor_with_room_for_everything_is_taken() -> None:
    verdict = only(decide(SITE, [holding("h100", gpus=3)], [ask("a", gpus=2)]))
    assert verdict.flavors == {"nvidia.com/gpu": "a100", "cpu": "a100"}
    assert verdict.message == "Quota reserved in ClusterQueue gpu"


def test_a_flavor_that_was_asked_for_is_waited_for() -> None:
    verdict = only(decide(SITE, [holding("h100", gpus=3)], [ask("a", gpus=2, flavor="h100")]))
    assert verdict.flavors is None
    assert verdict.message == (
        "couldn't assign flavors to pod set main: flavor a100 doesn't match node affinity, "
        "insufficient unused quota for nvidia.com/gpu in flavor h100, 1 more needed"
    )


def test_what_waits_says_how_much_is_missing() -> None:
    verdict = only(decide(SITE, [holding("h100", gpus=4), holding("a100", gpus=1)], [ask("a", gpus=2)]))
    assert verdict.reason == "Pending"
    assert "insufficient unused quota for nvidia.com/gpu in flavor h100, 2 more needed" in verdict.message
    assert "insufficient unused quota for nvidia.com/gpu in flavor a100, 1 more needed" in verdict.message


def test_what_can_never_fit_says_both_numbers() -> None:
    verdict = only(decide(SITE, [], [ask("a", gpus=8, flavor="h100")]))
    assert (
        "insufficient quota for nvidia.com/gpu in flavor h100, previously considered podsets requests (0) + current "
        "podset request (8) > maximum capacity (4)"
    ) in verdict.message


def test_fractions_are_told_in_kubernetes_quantities() -> None:
    site = QueueSnapshot((H100,), (QueueSpec("gpu", quotas("h100", cpu=1, memory=1)),))
    wanted = Ask("a", "gpu", {"cpu": Decimal("0.5"), "memory": Decimal("0.5")})
    used = Holding("gpu", {"cpu": Decimal("0.75"), "memory": Decimal("0.75")}, dict.fromkeys(("cpu", "memory"), "h100"))
    message = only(decide(site, [used], [wanted])).message
    assert "250m more needed" in message
    assert "256Mi more needed" in message


def test_the_oldest_is_first_and_what_fits_passes_what_does_not() -> None:
    verdicts = decide(SITE, [], [ask("big", gpus=8, cpu="1"), ask("a", gpus=4), ask("b", gpus=2), ask("c", gpus=1)])
    admitted = [verdict.key for verdict in verdicts if verdict.flavors is not None]
    assert admitted == ["a", "b"]


def test_each_admission_counts_for_those_behind_it() -> None:
    verdicts = decide(SITE, [], [ask("a", gpus=4), ask("b", gpus=1, flavor="h100")])
    assert verdicts[0].flavors is not None
    assert "1 more needed" in verdicts[1].message


def test_case_67_a_quota_below_its_usage_holds_back_and_a_raised_one_unblocks() -> None:
    used = [holding("h100", gpus=4)]

    def with_gpus(count: int) -> QueueSnapshot:
        return replace(SITE, queues=(QueueSpec("gpu", quotas("h100", gpus=count, cpu=16)),))

    over = only(decide(with_gpus(2), used, [ask("a", gpus=1, flavor="h100")]))
    assert "insufficient unused quota for nvidia.com/gpu in flavor h100, 3 more needed" in over.message
    assert only(decide(with_gpus(5), used, [ask("a", gpus=1, flavor="h100")])).flavors is not None


def test_a_quota_of_zero_can_never_be_had() -> None:
    site = replace(SITE, queues=(QueueSpec("gpu", quotas("h100", gpus=0, cpu=16)),))
    assert "(1) > maximum capacity (0)" in only(decide(site, [], [ask("a")])).message


def test_a_resource_that_the_queue_does_not_cover_is_named() -> None:
    wanted = Ask("a", "gpu", {"amd.com/gpu": Decimal(1), "cpu": Decimal(1)})
    message = only(decide(SITE, [], [wanted])).message
    assert message == "couldn't assign flavors to pod set main: resource amd.com/gpu unavailable in ClusterQueue"


def test_a_queue_that_is_stopped_or_absent_says_so() -> None:
    stopped = replace(SITE, queues=(replace(GPU_QUEUE, stopped=True),))
    verdict = only(decide(stopped, [], [ask("a")]))
    assert (verdict.reason, verdict.message) == ("Inadmissible", "ClusterQueue gpu is stopped")
    assert only(decide(SITE, [], [ask("a", queue="x")])).message == "ClusterQueue x doesn't exist"


def test_a_node_selector_keeps_away_from_flavors_with_other_labels() -> None:
    labelled = QueueSnapshot(
        (replace(H100, node_labels=(("model", "h100"),)), replace(A100, node_labels=(("model", "a100"),))), (GPU_QUEUE,)
    )
    wanted = replace(ask("a"), node_selector={"model": "a100", "zone": "any"})
    assert only(decide(labelled, [], [wanted])).flavors == {"nvidia.com/gpu": "a100", "cpu": "a100"}


def cohort(*, limit: int | None) -> QueueSnapshot:
    """Queues `one` and `two` with 4 GPUs each, which may borrow from each other up to `limit`."""
    most = None if limit is None else Decimal(limit)
    queues = tuple(
        QueueSpec(name, (FlavorQuota("h100", "nvidia.com/gpu", Decimal(4), most), *quotas("h100", cpu=64)), cohort="c")
        for name in ("one", "two")
    )
    return QueueSnapshot((H100,), queues)


def test_a_queue_borrows_what_its_cohort_leaves_unused() -> None:
    assert only(decide(cohort(limit=None), [], [ask("a", gpus=7, queue="one")])).flavors is not None
    taken = [holding("h100", gpus=2, queue="two")]
    verdict = only(decide(cohort(limit=None), taken, [ask("a", gpus=7, queue="one")]))
    assert "1 more needed" in verdict.message


def test_a_borrowing_limit_is_kept() -> None:
    assert only(decide(cohort(limit=1), [], [ask("a", gpus=5, queue="one")])).flavors is not None
    verdict = only(decide(cohort(limit=1), [], [ask("a", gpus=6, queue="one")]))
    assert "(6) > maximum capacity (5)" in verdict.message


def test_what_others_borrowed_is_missing_from_ones_own() -> None:
    taken = [holding("h100", gpus=6, queue="two")]
    verdict = only(decide(cohort(limit=None), taken, [ask("a", gpus=3, queue="one")]))
    assert "insufficient unused quota for nvidia.com/gpu in flavor h100, 1 more needed" in verdict.message
