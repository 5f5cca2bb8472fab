"""Collecting everything that is wrong with a definition, each fault with its path."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from portal.catalog.policy.words import Bad, hint, short, shown
from portal.core.errors import Problem, Refused


class DefinitionInvalid(Refused):
    """A definition cannot be used. The problems' fields are paths such as "parameters.2.min" and "work.command.0"."""


class Faults:
    """The list of problems under way. Reads of typed keys note a problem and return None instead of raising."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, path: str, message: str, code: str = "invalid") -> None:
        self.problems.append(Problem(path, message, code))

    def raise_any(self) -> None:
        if self.problems:
            raise DefinitionInvalid(self.problems)

    def known_keys(self, path: str, data: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in data:
            if key not in known:
                message = _("“{key}” is not known here.").format(key=short(str(key)))
                self.add(f"{path}.{short(str(key))}".lstrip("."), f"{message} {hint(str(key), known)}", "unknown")

    def text(self, path: str, data: Mapping[str, Any], key: str, *, needed: bool = False) -> str:
        value = data.get(key)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or "\0" in value or (needed and not value.strip()):
            self.add(f"{path}.{key}".lstrip("."), _("It must be a text, not {given}.").format(given=shown(value)))
            return ""
        return value

    def flag(self, path: str, data: Mapping[str, Any], key: str, default: bool) -> bool:
        value = data.get(key, default)
        if not isinstance(value, bool):
            self.add(
                f"{path}.{key}".lstrip("."), _("It must be true or false, not {given}.").format(given=shown(value))
            )
            return default
        return value

    def items(self, path: str, data: Mapping[str, Any], key: str) -> list[Any]:
        value = data.get(key, [])
        if not isinstance(value, list):
            self.add(f"{path}.{key}".lstrip("."), _("It must be a list, not {given}.").format(given=shown(value)))
            return []
        return value

    def bad(self, path: str, bad: Bad) -> None:
        for message in bad.messages:
            self.add(path, message, bad.code)
