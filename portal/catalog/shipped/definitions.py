"""The definitions of the shipped templates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portal.catalog.shipped.parts import (
    LEARNING,
    RESOURCES,
    SECTIONS,
    Images,
    from_parameters,
    gpu,
    image,
    learning,
    machine,
    program,
    python_image,
    time_limit,
)


@dataclass(frozen=True, slots=True)
class Shipped:
    """A template as Beamtime brings it. `icon` is a name of bootstrap-icons."""

    slug: str
    title: str
    summary: str
    icon: str
    position: int
    definition: Mapping[str, Any]


def shipped_templates(images: Images) -> tuple[Shipped, ...]:
    """The five templates for a site with these images."""
    return (
        Shipped(
            "train-small-model",
            "Train a small model",
            "A neural network in plain Python: a minute of work, a loss curve and a progress bar. A good first job.",
            "graph-up",
            10,
            _training(images),
        ),
        Shipped(
            "script",
            "Script",
            "Your own shell script, with the image, GPUs and time that you choose.",
            "terminal",
            20,
            _script(images),
        ),
        Shipped(
            "gpu-check",
            "GPU check",
            "Lists the GPUs that a job is given and, where PyTorch is in the image, multiplies matrices on each.",
            "gpu-card",
            30,
            _gpu_check(images),
        ),
        Shipped(
            "data-preparation",
            "Data preparation",
            "Makes, cleans and shards a dataset on the CPU. Never takes a GPU.",
            "database",
            40,
            _data(images),
        ),
        Shipped(
            "array",
            "Array of runs",
            "The same program many times, each run with its own learning rate and its own log.",
            "grid-3x3-gap-fill",
            50,
            _array(images),
        ),
    )


def _script(images: Images) -> dict[str, Any]:
    return {
        "queue": "cpu",
        "sections": SECTIONS,
        "parameters": [
            {
                "name": "script",
                "kind": "script",
                "label": "Script",
                "section": "Program",
                "help": "Run by /bin/sh, as written.",
                "placeholder": "echo hello",
            },
            image(images, default=images.shell),
            {
                "name": "env",
                "kind": "env",
                "label": "Environment",
                "section": "Program",
                "help": "NAME=value, one per line.",
                "placeholder": "NCCL_DEBUG=WARN",
            },
            {
                "name": "secret",
                "kind": "secret",
                "label": "Secret",
                "section": "Program",
                "help": "Reaches the script as an environment variable. Never shown again.",
                "variable": {"from": "secret_name"},
            },
            {
                "name": "secret_name",
                "kind": "text",
                "label": "Name of the secret",
                "section": "Program",
                "help": "The variable that carries it, such as HF_TOKEN.",
                "default": "SECRET",
                "max_length": 200,
                "pattern": "[A-Za-z_][A-Za-z0-9_]*",
                "pattern_help": "Use letters, digits and _, no digit first.",
            },
            gpu(required=False),
            *machine(memory="1 GiB"),
            time_limit("1 h"),
        ],
        "work": {
            **RESOURCES,
            **from_parameters(gpus="gpu"),
            "command": ["/bin/sh", "-c", {"from": "script"}],
            "env": [{"from": "env"}],
        },
    }


def _training(images: Images) -> dict[str, Any]:
    return {
        "queue": "gpu",
        "sections": SECTIONS,
        "parameters": [
            *learning(rate_label="Learning rate", rate=0.05),
            python_image(images),
            gpu(required=True),
            *machine(memory="1 GiB"),
            time_limit("15 min"),
        ],
        "work": {
            **RESOURCES,
            **from_parameters(gpus="gpu"),
            "command": program("train_small_model.py"),
            "args": LEARNING,
        },
    }


def _gpu_check(images: Images) -> dict[str, Any]:
    return {
        "queue": "gpu",
        "sections": SECTIONS,
        "parameters": [
            python_image(images, default=images.pytorch),
            {
                "name": "strict",
                "kind": "boolean",
                "label": "Fail unless every GPU answers",
                "section": "Program",
            },
            gpu(required=True),
            *machine(memory="8 GiB" if images.pytorch else "1 GiB"),
            time_limit("10 min"),
        ],
        "work": {
            **RESOURCES,
            **from_parameters(gpus="gpu"),
            "command": program("gpu_check.py"),
            "args": ["--gpus", {"from": "gpu"}, {"if": "strict", "then": ["--strict"]}],
        },
    }


def _data(images: Images) -> dict[str, Any]:
    return {
        "queue": "cpu",
        "forbids_gpus": True,
        "sections": [section for section in SECTIONS if section["title"] != "GPUs"],
        "parameters": [
            {
                "name": "rows",
                "kind": "integer",
                "label": "Readings",
                "section": "Program",
                "default": 200_000,
                "min": 1,
                "max": 5_000_000,
            },
            {
                "name": "shards",
                "kind": "integer",
                "label": "Shards",
                "section": "Program",
                "default": 8,
                "min": 1,
                "max": 1_000,
            },
            {"name": "seed", "kind": "integer", "label": "Seed", "section": "Program", "default": 0, "min": 0},
            {
                "name": "folder",
                "kind": "text",
                "label": "Folder",
                "section": "Program",
                "required": False,
                "help": "Where the shards go. Empty: a folder that ends with the job.",
            },
            python_image(images),
            *machine(memory="1 GiB"),
            time_limit("30 min"),
        ],
        "work": {
            **RESOURCES,
            "command": program("prepare_data.py"),
            "args": [
                *["--rows", {"from": "rows"}, "--shards", {"from": "shards"}, "--seed", {"from": "seed"}],
                {"if": "folder", "then": [{"join": ["--folder=", {"from": "folder"}]}]},
            ],
        },
    }


def _array(images: Images) -> dict[str, Any]:
    return {
        "queue": "cpu",
        "sections": SECTIONS,
        "parameters": [
            {
                "name": "runs",
                "kind": "runs",
                "label": "Runs",
                "section": "Program",
                "default": 4,
                "max": 1_000,
                "help": "Each is a pod of its own and learns its number from JOB_COMPLETION_INDEX.",
            },
            {
                "name": "parallelism",
                "kind": "integer",
                "label": "At once",
                "section": "Program",
                "required": False,
                "min": 1,
                "max": 1_000,
                "unit": "runs",
                "help": "How many runs may be active at once. Empty: all.",
            },
            *learning(rate_label="Learning rate of the first run", rate=0.001),
            {
                "name": "last_learning_rate",
                "kind": "number",
                "label": "Learning rate of the last run",
                "section": "Program",
                "default": 0.3,
                "min": 1e-6,
                "max": 10,
                "help": "The runs between are spread evenly on a logarithmic scale.",
            },
            python_image(images),
            gpu(required=False),
            *machine(memory="256 MiB"),
            time_limit("15 min"),
        ],
        "work": {
            **RESOURCES,
            **from_parameters(gpus="gpu", runs="runs", parallelism="parallelism"),
            "command": program("train_small_model.py"),
            "args": [*LEARNING, "--sweep-to", {"from": "last_learning_rate"}, "--runs", {"from": "runs"}],
        },
    }
