"""Between an HTML form, where all is text, and values. The form is made from the same definition as the API schema.

Field names: the parameter's own name; for gpu `<name>.flavor` and `<name>.count`; for env a text `<name>` of NAME=value
lines, and any number of pairs `<name>.name` / `<name>.value` for values that hold a line break.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from portal.catalog.policy.units import format_duration, format_memory
from portal.catalog.specs import Definition, Kind, Parameter

_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,6})?")
_YES, _NO = frozenset({"on", "true", "yes", "1"}), frozenset({"", "off", "false", "no", "0"})


def from_form(definition: Definition, data: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Values for `clean` from a whole form (`dict(request.POST.lists())`); other fields are ignored.

    What cannot be read stays as the text it was, for `clean` to refuse with a sentence. A check box that is absent is
    false. An empty field of an optional parameter is missing; of a required one it stays empty and is refused.
    """
    values: dict[str, Any] = {}
    for parameter in definition.parameters:
        value = _read(parameter, data)
        if value is not None:
            values[parameter.name] = value
    return values


def to_form(definition: Definition, values: Mapping[str, Any]) -> dict[str, Any]:
    """What the fields show for canonical values, by field name; the inverse of `from_form`. Secrets are never there.

    Texts, but bool for a check box and lists for `<name>.name` and `<name>.value`.
    """
    fields: dict[str, Any] = {}
    for parameter in definition.parameters:
        value = values.get(parameter.name)
        if value is not None and parameter.kind is not Kind.SECRET:
            fields.update(_show(parameter, value))
    return fields


def _read(parameter: Parameter, data: Mapping[str, Sequence[str]]) -> Any:
    match parameter.kind:
        case Kind.BOOLEAN:
            return _boolean(_last(data, parameter.name) or "")
        case Kind.GPU:
            return _read_gpu(parameter, data)
        case Kind.ENV:
            return _read_env(parameter, data)
    text = _last(data, parameter.name)
    if text is None:
        return None
    if parameter.kind in (Kind.TEXT, Kind.SCRIPT):
        return text if text or parameter.required or parameter.default is not None else None
    if parameter.kind is Kind.SECRET:
        return text or None
    text = text.strip()
    if not text:
        return "" if parameter.required else None
    if parameter.kind in (Kind.INTEGER, Kind.RUNS, Kind.NUMBER):
        return _number(text)
    return text


def _boolean(text: str) -> bool | str:
    if text.lower() in _YES:
        return True
    return False if text.lower() in _NO else text


def _number(text: str) -> int | float | str:
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def _read_gpu(parameter: Parameter, data: Mapping[str, Sequence[str]]) -> Any:
    flavor, count = _last(data, f"{parameter.name}.flavor"), _last(data, f"{parameter.name}.count")
    if flavor is None and count is None:
        return None
    text = (count or "").strip()
    if not text and not parameter.required:
        return {"flavor": "", "count": 0}
    return {"flavor": (flavor or "").strip(), "count": _number(text) if text else ""}


def _read_env(parameter: Parameter, data: Mapping[str, Sequence[str]]) -> Any:
    text = _last(data, parameter.name) or ""
    names, values = data.get(f"{parameter.name}.name", ()), data.get(f"{parameter.name}.value", ())
    rows = [[name.strip(), _lines(value)] for name, value in zip(names, values, strict=False) if name.strip() or value]
    if not rows:
        return text if text.strip() or _last(data, parameter.name) is not None else None
    return [*text.split("\n"), *rows]


def _last(data: Mapping[str, Sequence[str]], name: str) -> str | None:
    found = data.get(name)
    return _lines(found[-1]) if found else None


def _lines(text: str) -> str:
    # A browser sends every line break of a text area as CR LF; a shell would choke on the CR.
    return text.replace("\r\n", "\n")


def _show(parameter: Parameter, value: Any) -> dict[str, Any]:
    name = parameter.name
    match parameter.kind:
        case Kind.GPU:
            return {f"{name}.flavor": value["flavor"], f"{name}.count": str(value["count"])}
        case Kind.ENV:
            plain = {key: text for key, text in value.items() if "\n" not in text and "\r" not in text}
            rest = {key: text for key, text in value.items() if key not in plain}
            fields: dict[str, Any] = {name: "\n".join(f"{key}={text}" for key, text in plain.items())}
            return fields | ({f"{name}.name": [*rest], f"{name}.value": [*rest.values()]} if rest else {})
        case Kind.BOOLEAN:
            return {name: value}
        case Kind.DURATION:
            return {name: format_duration(value)}
        case Kind.MEMORY:
            return {name: format_memory(value)}
        case Kind.INTEGER | Kind.RUNS | Kind.NUMBER:
            return {name: repr(value)}
    return {name: value}
