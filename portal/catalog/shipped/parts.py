"""Pieces that several of the shipped definitions share. Programs are the readable files in programs/."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAMS = Path(__file__).parent / "programs"

SECTIONS = [
    {"title": "Program", "help": "What runs in the container."},
    {"title": "GPUs", "help": "What the job holds while it runs, used or not."},
    {"title": "Machine", "help": "Cores and memory, per pod."},
    {"title": "Time", "help": "The job is stopped at its limit."},
]


@dataclass(frozen=True, slots=True)
class Images:
    """The container images to offer; an empty one is not offered."""

    shell: str
    python: str
    pytorch: str = ""


def program(name: str) -> list[Any]:
    return ["python3", "-u", "-c", (_PROGRAMS / name).read_text(encoding="utf-8")]


def image(images: Images, *, default: str) -> dict[str, Any]:
    known = [(images.shell, "Shell"), (images.python, "Python"), (images.pytorch, "PyTorch with CUDA")]
    choices = {value: f"{label} ({value})" for value, label in known if value}
    return {
        "name": "image",
        "kind": "image",
        "label": "Image",
        "section": "Program",
        "default": default,
        "choices": [{"value": value, "label": label} for value, label in choices.items()],
    }


def python_image(images: Images, *, default: str = "") -> dict[str, Any]:
    without_shell = Images(shell="", python=images.python, pytorch=images.pytorch)
    return image(without_shell, default=default or images.python)


def gpu(*, required: bool) -> dict[str, Any]:
    return {
        "name": "gpu",
        "kind": "gpu",
        "label": "GPUs",
        "section": "GPUs",
        "required": required,
        "default": {"flavor": "", "count": 1 if required else 0},
        "min": 1 if required else 0,
        "max": 8,
    }


def machine(*, memory: str) -> list[dict[str, Any]]:
    return [
        {
            "name": "cores",
            "kind": "number",
            "label": "Cores",
            "section": "Machine",
            "default": 1,
            "min": 0.1,
            "max": 64,
            "unit": "cores",
        },
        {
            "name": "memory",
            "kind": "memory",
            "label": "Memory",
            "section": "Machine",
            "default": memory,
            "min": "32 MiB",
            "max": "512 GiB",
            "help": "A job that passes it is killed. Such as 512 MiB or 64 GiB.",
        },
    ]


def time_limit(default: str) -> dict[str, Any]:
    return {
        "name": "time_limit",
        "kind": "duration",
        "label": "Time limit",
        "section": "Time",
        "default": default,
        "min": "5 s",
        "max": "7 d",
        "help": "Such as 2 h 30 min or 90 min.",
    }


def from_parameters(**names: str) -> dict[str, Any]:
    return {key: {"from": name} for key, name in names.items()}


RESOURCES = from_parameters(image="image", cpu="cores", memory="memory", time_limit="time_limit")


def learning(*, rate_label: str, rate: float) -> list[dict[str, Any]]:
    return [
        {
            "name": "epochs",
            "kind": "integer",
            "label": "Epochs",
            "section": "Program",
            "default": 30,
            "min": 1,
            "max": 10_000,
        },
        {
            "name": "learning_rate",
            "kind": "number",
            "label": rate_label,
            "section": "Program",
            "default": rate,
            "min": 1e-6,
            "max": 10,
        },
        {
            "name": "seed",
            "kind": "integer",
            "label": "Seed",
            "section": "Program",
            "default": 0,
            "min": 0,
            "max": 2**31 - 1,
            "help": "The same seed gives the same numbers.",
        },
        {
            "name": "seconds_per_epoch",
            "kind": "number",
            "label": "Seconds per epoch",
            "section": "Program",
            "default": 2.5,
            "min": 0,
            "max": 60,
            "unit": "s",
            "help": "Slows the tiny model down to something one can watch.",
        },
    ]


LEARNING = [
    *["--epochs", {"from": "epochs"}, "--learning-rate", {"from": "learning_rate"}],
    *["--seed", {"from": "seed"}, "--seconds-per-epoch", {"from": "seconds_per_epoch"}],
]


def starter(images: Images) -> dict[str, Any]:
    """What an administrator's new template starts from."""
    return {
        "queue": "cpu",
        "parameters": [
            {"name": "greeting", "kind": "text", "label": "Greeting", "default": "hello", "help": "Printed once."},
            {"name": "time_limit", "kind": "duration", "label": "Time limit", "default": "10 min", "max": "1 d"},
        ],
        "work": {
            "image": images.shell,
            "command": ["/bin/echo", {"from": "greeting"}],
            "time_limit": {"from": "time_limit"},
        },
    }
