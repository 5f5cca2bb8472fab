"""Say which GPUs this job was given, and whether they work.

Asks the driver (nvidia-smi, NVML, /proc/driver/nvidia) for the devices; if PyTorch is in the image, multiplies two
large matrices on each. Without a driver it says so. With --strict the job fails unless every GPU answered.
"""

import argparse
import ctypes
import importlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SIZE, ROUNDS = 8192, 10
GREEN, RED, YELLOW, BOLD, RESET = (f"\033[{code}m" for code in ("32", "31", "33", "1", "0"))


def heading(text: str) -> None:
    print(f"\n{BOLD}{text}{RESET}", flush=True)


def given() -> None:
    """What the job was given, as its environment tells."""
    heading("Given to this job")
    pretended = os.environ.get("BEAMTIME_PRETENDED_GPUS")
    if pretended:
        print(f"{YELLOW}Pretended GPUs: {pretended}.{RESET} They do not exist; nothing can be computed on them.")
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        if name in os.environ:
            print(f"{name}={os.environ[name]}")
    nodes = sorted(str(path) for path in Path("/dev").glob("nvidia[0-9]*"))
    print(f"Device files: {', '.join(nodes) or 'none'}", flush=True)


def from_tool() -> list[str]:
    """Devices as nvidia-smi lists them."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        print("nvidia-smi: not found here")
        return []
    try:
        answer = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"nvidia-smi: {error}")
        return []
    print(f"nvidia-smi: {(answer.stdout or answer.stderr).strip() or 'no answer'}")
    return [line for line in answer.stdout.splitlines() if line.startswith("GPU ")] if answer.returncode == 0 else []


def from_library() -> list[str]:
    """Devices as NVML names them, without nvidia-smi."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        print("NVML: no driver library here")
        return []
    code = nvml.nvmlInit_v2()
    if code != 0:
        print(f"NVML: the driver answers with error {code}")
        return []
    count = ctypes.c_uint()
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    names = []
    for index in range(count.value):
        handle, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0:
            nvml.nvmlDeviceGetName(handle, text, len(text))
            names.append(f"GPU {index}: {text.value.decode(errors='replace')}")
    nvml.nvmlShutdown()
    print(f"NVML: {'; '.join(names) or 'no devices'}")
    return names


def from_kernel() -> list[str]:
    """Devices as the kernel module shows them."""
    names = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        lines = path.read_text(errors="replace").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("Model:")), "unknown model")
        names.append(f"{path.parent.name}: {model}")
    version = Path("/proc/driver/nvidia/version")
    if version.exists():
        print(f"Kernel module: {version.read_text(errors='replace').splitlines()[0]}")
    print(f"Kernel's list: {'; '.join(names) or 'no NVIDIA driver is loaded on this node'}")
    return names


def multiply() -> int | None:
    """Multiply matrices on every GPU that PyTorch sees; the number that worked, or None without PyTorch."""
    heading("Matrix product")
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        print(
            "PyTorch is not in this image, so nothing is computed. Pick an image with PyTorch to test the arithmetic."
        )
        return None
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda or 'not built in'}", flush=True)
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU.")
        return 0
    worked = 0
    for index in range(torch.cuda.device_count()):
        name = torch.cuda.get_device_name(index)
        try:
            rate = product(torch, index)
        except RuntimeError as error:
            print(f"{RED}GPU {index} ({name}): {error}{RESET}", flush=True)
            continue
        worked += 1
        print(f"{GREEN}GPU {index} ({name}): {SIZE} × {SIZE} at {rate:.1f} TFLOP/s, result is right{RESET}", flush=True)
    return worked


def product(torch: Any, index: int) -> float:
    """TFLOP/s of random matrices, after a product of ones whose every element must be SIZE; RuntimeError if not."""
    device = f"cuda:{index}"
    ones = torch.ones(SIZE, SIZE, device=device, dtype=torch.bfloat16)
    if not bool((ones @ ones == SIZE).all()):
        raise RuntimeError("the product is wrong")
    # Random numbers, because a GPU draws less power on ones and would look faster than it is.
    noise = torch.randn(SIZE, SIZE, device=device, dtype=torch.bfloat16)
    torch.matmul(noise, noise)
    torch.cuda.synchronize(index)
    started = time.monotonic()
    for _ in range(ROUNDS):
        torch.matmul(noise, noise)
    torch.cuda.synchronize(index)
    took = time.monotonic() - started
    return float(2 * SIZE**3 * ROUNDS / took / 1e12)


def bound(seen: int) -> int:
    """How many devices the job may use, where its environment binds it to some of the machine's."""
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    return seen if names is None else len([name for name in names.split(",") if name.strip()])


def main() -> int:
    parser = argparse.ArgumentParser(description="Say which GPUs this job was given, and whether they work.")
    parser.add_argument("--gpus", type=int, default=0, help="how many were asked for")
    parser.add_argument("--strict", action="store_true", help="fail unless all of them answered")
    options = parser.parse_args()
    given()
    heading("What the driver says")
    lists = [from_tool(), from_library(), from_kernel()]
    seen = max(len(found) for found in lists)
    worked = multiply()
    heading("Result")
    answered = min(seen, bound(seen)) if worked is None else worked
    colour = GREEN if answered >= options.gpus else YELLOW
    print(f"{colour}{answered} of {options.gpus} GPUs answered.{RESET}")
    if not seen:
        print(
            "No NVIDIA driver was found: the GPUs are pretended, or the node's driver or device plugin is not set up."
        )
    if options.strict and answered < options.gpus:
        print(f"{RED}Strict: the job fails because of that.{RESET}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
