"""Manifests as people read them: YAML, with scripts as blocks of lines."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml


class _Readable(yaml.SafeDumper):
    """The safe dumper, with scripts as blocks of lines instead of one quoted text."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _text)


def yaml_lines(manifests: Iterable[Mapping[str, Any]]) -> list[str]:
    """The lines of the documents; secrets stand in them by name only, because that is all that manifests hold."""
    documents = [dict(manifest) for manifest in manifests]
    text = yaml.dump_all(documents, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=110)
    return str(text).split("\n")[:-1]
