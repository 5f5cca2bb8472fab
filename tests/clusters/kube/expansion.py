"""How Kubernetes expands `$(NAME)`, written anew from its documented rules and apart from the portal's code.

https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/ and
k8s.io/kubernetes/third_party/forked/golang/expansion: `$$` is a `$`; `$(NAME)` is the value of a variable defined
before, or stays as it is; any other `$` stays.
"""

from collections.abc import Iterable, Mapping
from typing import Any


def expand(text: str, known: Mapping[str, str]) -> str:
    out = []
    at = 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            out.append(text[at])
            at += 1
        elif text[at + 1] == "$":
            out.append("$")
            at += 2
        elif text[at + 1] == "(" and ")" in text[at:]:
            end = text.index(")", at)
            name = text[at + 2 : end]
            out.append(known.get(name, text[at : end + 1]))
            at = end + 1
        else:
            out.append(text[at : at + 2])
            at += 2
    return "".join(out)


def environment(env: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What the kubelet makes of a container's `env`: in order, each value may name the variables before it."""
    made: dict[str, str] = {}
    for entry in env:
        if "value" in entry:
            made[entry["name"]] = expand(entry["value"], made)
    return made


def words(container: Mapping[str, Any]) -> list[str]:
    """The argument vector that the container's process receives."""
    known = environment(container["env"])
    return [expand(word, known) for word in [*container["command"], *container["args"]]]
