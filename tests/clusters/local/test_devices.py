"""Which GPUs jobs are given."""

from decimal import Decimal

import pytest

from portal.clusters.local.devices import Gpu, installed, pools
from portal.clusters.specs import FlavorQuota, FlavorSpec, QueueSnapshot, QueueSpec

H200 = tuple(Gpu(index, "NVIDIA H200", 140) for index in range(2))


def site(*flavors: FlavorSpec, gpus: int = 2) -> QueueSnapshot:
    quotas = tuple(FlavorQuota(flavor.name, "nvidia.com/gpu", Decimal(gpus)) for flavor in flavors)
    cores = tuple(FlavorQuota(flavor.name, "cpu", Decimal(64)) for flavor in flavors)
    return QueueSnapshot(flavors, (QueueSpec("gpu", quotas + cores),))


def test_pretended_gpus_are_numbered_on_from_flavor_to_flavor() -> None:
    snapshot = site(FlavorSpec("h100", pretended=True), FlavorSpec("a100", pretended=True), FlavorSpec("cpu"))
    assert pools(snapshot, ()) == {"h100": ("0", "1"), "a100": ("2", "3"), "cpu": ()}


def test_a_real_flavor_has_the_gpus_of_its_model_however_large_its_quota() -> None:
    snapshot = site(FlavorSpec("h200", gpu_model="NVIDIA H200"), FlavorSpec("l4", gpu_model="NVIDIA L4"), gpus=8)
    assert pools(snapshot, H200) == {"h200": ("0", "1"), "l4": ()}


@pytest.mark.parametrize(
    ("visible", "left"), [(None, [0, 1]), ("1", [1]), ("", []), ("0, 1", [0, 1]), ("GPU-8932f937", [0, 1])]
)
def test_an_operator_can_keep_gpus_from_the_portal(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, left: list[int]
) -> None:
    from portal.clusters.local import devices

    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.index for gpu in H200 if devices._ours(gpu.index)] == left


def test_asking_the_driver_fails_on_no_machine() -> None:
    installed.cache_clear()
    assert all(gpu.model and gpu.memory_gib > 0 for gpu in installed())
