"""What was filled in, as short facts. Secrets are not among a job's values, so none can stand here."""

from collections.abc import Mapping
from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.catalog.policy import format_duration, format_memory
from portal.catalog.specs import Kind

# What of the work stands among the facts already.
_FACTS = ("image", "cpu", "memory", "gpus", "runs", "time_limit")
LONGEST = 120


def filled_in(definition: Mapping[str, Any], values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(label, words) of each value, in the order of the form. The definition is read as stored, whatever its age."""
    parameters = [p for p in definition.get("parameters", ()) if isinstance(p, Mapping)]
    known = {str(p.get("name")): p for p in parameters}
    work = definition.get("work") or {}
    told = {work[key]["from"] for key in _FACTS if isinstance(work.get(key), Mapping) and "from" in work[key]}
    names = [name for name in known if name in values] + [name for name in values if name not in known]
    found = []
    for name in names:
        kind = str(known.get(name, {}).get("kind", ""))
        words = "" if name in told or values[name] is None else _words(kind, values[name])
        if words:
            found.append((str(known.get(name, {}).get("label") or name), words))
    return found


def _words(kind: str, value: Any) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if kind == Kind.DURATION and isinstance(value, int):
        return format_duration(value)
    if kind == Kind.MEMORY and isinstance(value, int):
        return format_memory(value)
    if kind == Kind.ENV and isinstance(value, Mapping):
        return ", ".join(map(str, value))[:LONGEST]
    text = str(value)
    lines = text.count("\n") + 1
    if kind == Kind.SCRIPT or lines > 1:
        return ngettext("%(n)d line", "%(n)d lines", lines) % {"n": lines}
    if len(text) > LONGEST:
        return format_html('<span title="{}">{}…</span>', text[:1000], text[:LONGEST])
    return text
