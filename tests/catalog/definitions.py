"""Definitions that the catalog's tests fill in."""

from typing import Any

from portal.catalog.policy import parse_definition
from portal.catalog.specs import Definition, FlavorChoice, Offer
from portal.core.errors import Problem, Refused

OFFER = Offer(
    flavors=(
        FlavorChoice("h100", "NVIDIA H100 (pretended)", "NVIDIA H100", 4, pretended=True),
        FlavorChoice("l40s", "NVIDIA L40S", "NVIDIA L40S", 8),
    ),
    queues=("gpu",),
)

EVERY_KIND: dict[str, Any] = {
    "sections": [{"title": "Program"}, {"title": "Machine", "help": "Per pod."}],
    "parameters": [
        {"name": "title", "kind": "text", "section": "Program", "max_length": 20, "required": False},
        {"name": "script", "kind": "script", "section": "Program"},
        {"name": "epochs", "kind": "integer", "default": 10, "min": 1, "max": 1000},
        {"name": "rate", "kind": "number", "default": 0.1, "min": 0, "max": 1, "label": "Learning rate"},
        {"name": "verbose", "kind": "boolean"},
        {
            "name": "optimizer",
            "kind": "choice",
            "choices": ["adam", {"value": "sgd", "label": "SGD"}],
            "default": "adam",
        },
        {"name": "image", "kind": "image", "choices": ["busybox:1.37", "python:3.12-slim"], "default": "busybox:1.37"},
        {"name": "env", "kind": "env"},
        {"name": "token", "kind": "secret", "variable": "HF_TOKEN"},
        {"name": "gpu", "kind": "gpu", "default": {"flavor": "", "count": 1}, "max": 16},
        {"name": "memory", "kind": "memory", "section": "Machine", "default": "2 GiB", "max": "512 GiB"},
        {"name": "time_limit", "kind": "duration", "section": "Machine", "default": "1 h", "max": "7 d"},
        {"name": "runs", "kind": "runs", "default": 1, "max": 100},
    ],
    "work": {
        "image": {"from": "image"},
        "command": ["/bin/sh", "-c", {"from": "script"}],
        "args": [
            {"join": ["--epochs=", {"from": "epochs"}]},
            {"join": ["--rate=", {"from": "rate"}]},
            {"from": "optimizer"},
            {"if": "title", "then": ["--title", {"from": "title"}]},
            {"if": "verbose", "then": ["-v"], "else": ["-q"]},
        ],
        "env": [{"name": "TITLE", "value": {"from": "title"}}, {"from": "env"}],
        "cpu": 2,
        "memory": {"from": "memory"},
        "gpus": {"from": "gpu"},
        "runs": {"from": "runs"},
        "time_limit": {"from": "time_limit"},
    },
}


def every_kind() -> Definition:
    """One parameter of each kind; only `script` must be given."""
    return parse_definition(EVERY_KIND)


def with_parameter(**parameter: Any) -> Definition:
    """A definition with one parameter, `x` unless named, passed on as an argument or where its kind belongs."""
    parameter = {"name": "x", **parameter}
    source = {"from": parameter["name"]}
    work: dict[str, Any] = {"image": "busybox:1.37", "command": ["/bin/true"]}
    match parameter["kind"]:
        case "env":
            work["env"] = [source]
        case "secret":
            parameter.setdefault("variable", "SECRET")
        case _:
            work["command"] = ["/bin/echo", {"if": parameter["name"], "then": [source]}]
    return parse_definition({"parameters": [parameter], "work": work})


def problems_of(refused: Refused) -> dict[str, str]:
    """Field -> message, the last of each."""
    return {problem.field: problem.message for problem in refused.problems}


def problem_of(refused: Refused) -> Problem:
    """The only problem."""
    (problem,) = refused.problems
    return problem
