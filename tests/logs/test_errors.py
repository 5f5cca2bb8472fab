"""Which lines tell of an error, on lines as programs really write them."""

import time

import pytest

from portal.logs.policy.errors import ERRORS, Kind, kind_of, level_of

SAMPLES = [
    (Kind.TRACEBACK, "Traceback (most recent call last):"),
    (Kind.TRACEBACK, "[rank3]: Traceback (most recent call last):"),
    (Kind.TRACEBACK, "2026-11-19 14:02:11,123 - ERROR - Traceback (most recent call last):"),
    (Kind.MEMORY, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"),
    (Kind.MEMORY, "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"),
    (Kind.MEMORY, "[  812.1] Out of memory: Killed process 4121 (python3) total-vm:81230012kB"),
    (Kind.MEMORY, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)"),
    (Kind.MEMORY, "MemoryError"),
    (Kind.MEMORY, "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB"),
    (Kind.MEMORY, "terminate called after throwing an instance of 'std::bad_alloc'"),
    (Kind.MEMORY, "OSError: [Errno 12] Cannot allocate memory"),
    (Kind.MEMORY, "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000 bytes."),
    (Kind.MEMORY, "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate"),
    (Kind.CUDA, "RuntimeError: CUDA error: device-side assert triggered"),
    (Kind.CUDA, "CUDA error: an illegal memory access was encountered"),
    (Kind.CUDA, "RuntimeError: CUDA driver error: initialization error"),
    (Kind.CUDA, "CUDA failure 2: cudaErrorMemoryAllocation"),
    (Kind.CUDA, "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
    (Kind.CUDA, "CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    (Kind.CUDA, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."),
    (Kind.NCCL, "h100-03:4121:4188 [2] NCCL WARN socketStartConnect: Connect to 10.0.0.4<40041> failed"),
    (Kind.NCCL, "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1269"),
    (Kind.NCCL, "ncclSystemError: System call (e.g. socket, malloc) or external library call failed"),
    (Kind.NCCL, "[E ProcessGroupNCCL.cpp:474] [Rank 1] Watchdog caught collective operation timeout"),
    (Kind.CRASH, "Segmentation fault (core dumped)"),
    (Kind.CRASH, "Fatal Python error: Bus error"),
    (Kind.CRASH, "thread 'main' panicked at src/main.rs:4:5:"),
    (Kind.CRASH, "panic: runtime error: index out of range [5] with length 3"),
    (Kind.ERROR, "ValueError: could not convert string to float: 'x'"),
    (Kind.ERROR, "[rank0]: FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'"),
    (Kind.ERROR, "KeyboardInterrupt"),
    (Kind.ERROR, "Error: the dataset is empty"),
    (Kind.ERROR, "error: unrecognized arguments: --lr2"),
    (Kind.ERROR, "train.py: error: unrecognized arguments: --lr2"),
    (Kind.ERROR, "14:27:31 ERROR wandb: could not reach the server, 3 points kept"),
    (Kind.ERROR, "ERROR    2026-11-19 checkpoint cannot be written"),
    (Kind.ERROR, "2026-11-19 14:02:11,123 | ERROR | train | loss is NaN"),
    (Kind.ERROR, "[2026-11-19 14:02:11] [ERROR] loss is NaN"),
    (Kind.ERROR, "fatal: not a git repository (or any of the parent directories): .git"),
    (Kind.ERROR, "\x1b[31mERROR\x1b[0m wandb: could not reach the server"),
]  # fmt: skip
QUIET = [
    "",
    "INFO  step 5950/12000  loss 1.3027  lr 1.46e-05",
    "0 errors, 0 warnings",
    "error_rate=0.013 top1_error=0.21 top5 error 0.05",
    "mean absolute error 0.12, mean squared error: 0.4",
    "validation error went from 0.31 to 0.29",
    "no errors found",
    "NCCL INFO Bootstrap : Using eth0:10.0.0.4<0>",
    "CUDA available: True, devices: 8",
    "CUBLAS_STATUS_SUCCESS",
    "CUDNN_STATUS_SUCCESS",
    "retrying without terror: fine",
    "WARN  DataLoader worker 5 took 2.31 s for one batch",
    "GPU memory: 71.4 GiB of 80",
]


@pytest.mark.parametrize(("kind", "line"), SAMPLES)
def test_an_error_is_known_by_its_words(kind: Kind, line: str) -> None:
    assert kind_of(line) == kind
    assert level_of(line) == "error"


@pytest.mark.parametrize("line", QUIET)
def test_an_ordinary_line_is_none(line: str) -> None:
    assert kind_of(line) is None


@pytest.mark.parametrize("line", [line for _, line in SAMPLES if "\x1b" not in line] + QUIET)
def test_the_search_over_bytes_and_the_rule_for_a_line_agree(line: str) -> None:
    data = b"before\n" + line.encode() + b"\nafter\n"
    at = ERRORS.find(data, 0)
    assert (at >= 0) == (kind_of(line) is not None)
    assert at < 0 or data.count(b"\n", 0, at) == 1


@pytest.mark.parametrize(
    ("level", "line"),
    [
        ("warning", "14:22:40 WARN  DataLoader worker 5 took 2.31 s"),
        ("warning", "/usr/lib/python3/site.py:12: UserWarning: the rank is not set"),
        ("warning", "[WARNING] falling back to gloo"),
        ("warning", "Warning: no checkpoint was found"),
        ("info", "step 6000/12000 loss 1.2"),
        ("info", "warnings are off"),
    ],
)
def test_a_warning_is_less_than_an_error(level: str, line: str) -> None:
    assert level_of(line) == level


def test_a_long_line_without_an_end_is_quickly_judged() -> None:
    began = time.process_time()
    for piece in ("x", "a: ", "[", "[x] ", "1", "1 ", "1-", "w ", "ERROR", "killed process ", "[WARN"):
        level_of(piece * 100_000)
    assert time.process_time() - began < 1
