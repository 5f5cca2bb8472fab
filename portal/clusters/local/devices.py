"""The GPUs that jobs of this machine are given: those that NVML reports, or pretended ones.

NVML is asked through the driver's own library, so nothing has to be installed for it. MIG slices are not told apart.
"""

import ctypes
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from portal.clusters.specs import QueueSnapshot

logger = logging.getLogger(__name__)

_LIBRARY = "libnvidia-ml.so.1"
_NAME_LENGTH = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU of this machine; `index` in the order of the PCI bus, which is NVML's."""

    index: int
    model: str
    memory_gib: int


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _NvmlError(Exception):
    pass


@lru_cache(maxsize=1)
def installed() -> tuple[Gpu, ...]:
    """The NVIDIA GPUs that the portal itself may use; empty without a driver. Asked once per process."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return ()
    try:
        gpus = _ask(library)
    except (_NvmlError, AttributeError) as error:
        logger.warning("NVML is there but does not answer (%s); this machine counts as one without GPUs", error)
        return ()
    return tuple(gpu for gpu in gpus if _ours(gpu.index))


def _ask(library: ctypes.CDLL) -> list[Gpu]:
    _check(library.nvmlInit_v2(), "nvmlInit")
    try:
        count = ctypes.c_uint()
        _check(library.nvmlDeviceGetCount_v2(ctypes.byref(count)), "nvmlDeviceGetCount")
        return [_describe(library, index) for index in range(count.value)]
    finally:
        library.nvmlShutdown()


def _describe(library: ctypes.CDLL, index: int) -> Gpu:
    handle, name, memory = ctypes.c_void_p(), ctypes.create_string_buffer(_NAME_LENGTH), _Memory()
    _check(library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)), "nvmlDeviceGetHandleByIndex")
    _check(library.nvmlDeviceGetName(handle, name, _NAME_LENGTH), "nvmlDeviceGetName")
    _check(library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)), "nvmlDeviceGetMemoryInfo")
    return Gpu(index, name.value.decode(errors="replace"), round(memory.total / 2**30))


def _check(code: int, call: str) -> None:
    if code != 0:
        raise _NvmlError(f"{call} answered {code}")


def _ours(index: int) -> bool:
    """Whether an operator who narrowed the portal's own CUDA_VISIBLE_DEVICES left this GPU in."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return True
    parts = [part.strip() for part in visible.split(",") if part.strip()]
    # Names such as GPU-8932f937 cannot be compared with numbers; then all count.
    return not all(map(str.isdigit, parts)) or str(index) in parts


def pools(snapshot: QueueSnapshot, gpus: tuple[Gpu, ...]) -> Mapping[str, tuple[str, ...]]:
    """Device numbers by flavor: what CUDA_VISIBLE_DEVICES may name.

    A pretended flavor has as many as its quotas add up to, numbered on from flavor to flavor. A real flavor has the
    machine's GPUs of its model, however large its quota is.
    """
    result: dict[str, tuple[str, ...]] = {}
    first = 0
    for flavor in snapshot.flavors:
        quotas = [quota for queue in snapshot.queues for quota in queue.quotas if quota.flavor == flavor.name]
        count = sum(int(quota.nominal) for quota in quotas if quota.resource not in ("cpu", "memory"))
        if flavor.pretended:
            result[flavor.name] = tuple(str(number) for number in range(first, first + count))
            first += count
        else:
            result[flavor.name] = tuple(str(gpu.index) for gpu in gpus if gpu.model == flavor.gpu_model)
    return result
