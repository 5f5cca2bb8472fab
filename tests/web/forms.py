"""Filling in the submit form as a browser does, and a template with a parameter of every kind."""

from typing import Any

from django.test import Client

from tests.web.pages import fields

SCRIPT = "/teams/vision/submit/script/"

# One parameter of every kind.
KINDS: dict[str, Any] = {
    "queue": "gpu",
    "sections": [{"title": "Program", "help": "What runs."}],
    "parameters": [
        {"name": "title", "kind": "text", "section": "Program", "max_length": 20},
        {"name": "script", "kind": "script", "section": "Program"},
        {"name": "epochs", "kind": "integer", "min": 1, "max": 100, "default": 10},
        {"name": "rate", "kind": "number", "min": 0, "max": 1, "default": 0.05},
        {"name": "verbose", "kind": "boolean"},
        {"name": "optimiser", "kind": "choice", "choices": ["adam", {"value": "sgd", "label": "Plain SGD"}]},
        {"name": "limit", "kind": "duration", "default": "1 h", "max": "2 d"},
        {"name": "memory", "kind": "memory", "default": "2 GiB"},
        {"name": "gpu", "kind": "gpu", "default": {"flavor": "", "count": 1}, "max": 8},
        {"name": "image", "kind": "image", "choices": ["busybox:1", "python:3"], "default": "python:3"},
        {"name": "env", "kind": "env"},
        {"name": "token", "kind": "secret", "variable": "HF_TOKEN"},
        {"name": "runs", "kind": "runs", "default": 2, "max": 9},
    ],
    "work": {
        "image": {"from": "image"},
        "command": ["/bin/sh", "-c", {"from": "script"}, {"from": "title"}, {"from": "optimiser"}],
        "args": [{"from": "epochs"}, {"from": "rate"}, {"if": "verbose", "then": ["-v"]}],
        "env": [{"from": "env"}],
        "memory": {"from": "memory"},
        "gpus": {"from": "gpu"},
        "runs": {"from": "runs"},
        "time_limit": {"from": "limit"},
    },
}
FILLED = {"title": "a title", "script": "echo hello", "optimiser": "sgd"}


def filled(client: Client, address: str = SCRIPT, **values: str) -> dict[str, str]:
    """The form as a browser would send it, with some fields typed over."""
    return {**fields(client.get(address), "submit-form"), **values}
