"""The JSON Schema of a version's values, from the same definition as the form and the checks.

What the schema takes, `clean` takes, save what JSON Schema cannot say: sizes in bytes, the range of a duration or of
memory written as a text, and variables of one name in two places.
"""

import sys
from typing import Any

from portal.catalog.policy import limits
from portal.catalog.policy.units import DURATION_PATTERN, MEMORY_PATTERN
from portal.catalog.specs import Definition, Kind, Offer, Parameter

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# "$" would let a line break through behind the last character, in Python though not in JavaScript.
_END = r"(?![\s\S])"
_NO_NUL = rf"^[^\u0000]*{_END}"
_VARIABLE = rf"^[A-Za-z_][A-Za-z0-9_]{{0,199}}{_END}"


def json_schema(definition: Definition, offer: Offer | None = None) -> dict[str, Any]:
    """Draft 2020-12, for the object under "values". `offer` None leaves flavors open."""
    names_of_variables = {parameter.variable_from for parameter in definition.secrets}
    properties: dict[str, Any] = {}
    for parameter in definition.parameters:
        schema = _schema(parameter, offer)
        if parameter.name in names_of_variables:
            schema = {**schema, "allOf": [*schema.get("allOf", []), _variable()]}
        properties[parameter.name] = _annotations(parameter) | schema
    needed = [p.name for p in definition.parameters if p.required and p.default is None]
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }


def _annotations(parameter: Parameter) -> dict[str, Any]:
    notes: dict[str, Any] = {"title": parameter.label}
    if parameter.help:
        notes["description"] = parameter.help
    if parameter.default is not None:
        notes["default"] = parameter.default
    notes["x-kind"] = str(parameter.kind)
    if parameter.unit:
        notes["x-unit"] = parameter.unit
    return notes


def _schema(parameter: Parameter, offer: Offer | None) -> dict[str, Any]:
    match parameter.kind:
        case Kind.TEXT:
            return _text(parameter)
        case Kind.SCRIPT:
            return {
                "type": "string",
                "pattern": r"\S",
                "maxLength": limits.SCRIPT_BYTES,
                "allOf": [{"pattern": _NO_NUL}],
            }
        case Kind.INTEGER | Kind.RUNS:
            return {"type": "integer", **_range(parameter)}
        case Kind.NUMBER:
            return {"type": "number", **_range(parameter)}
        case Kind.BOOLEAN:
            return {"type": "boolean"}
        case Kind.CHOICE | Kind.IMAGE:
            return {"type": "string", "enum": [choice.value for choice in parameter.choices]}
        case Kind.DURATION:
            return {
                "anyOf": [{"type": "integer", **_range(parameter)}, {"type": "string", "pattern": DURATION_PATTERN}]
            }
        case Kind.MEMORY:
            return {"anyOf": [{"type": "integer", **_range(parameter)}, {"type": "string", "pattern": MEMORY_PATTERN}]}
        case Kind.SECRET:
            return {"type": "string", "writeOnly": True, "pattern": _NO_NUL, "maxLength": limits.SECRET_BYTES}
        case Kind.GPU:
            return _gpu(parameter, offer)
        case Kind.ENV:
            return {
                "type": "object",
                "propertyNames": _variable(),
                "additionalProperties": {"type": "string", "pattern": _NO_NUL},
            }


def _text(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "pattern": _NO_NUL}
    if parameter.min_length:
        schema["minLength"] = parameter.min_length
    if parameter.max_length is not None:
        schema["maxLength"] = parameter.max_length
    if parameter.pattern:
        schema["allOf"] = [{"pattern": f"^(?:{parameter.pattern}){_END}"}]
    return schema


def _variable() -> dict[str, Any]:
    return {"pattern": _VARIABLE, "not": {"enum": sorted(limits.RESERVED_VARIABLES)}}


def _range(parameter: Parameter) -> dict[str, Any]:
    low = -sys.float_info.max if parameter.min is None else parameter.min
    high = sys.float_info.max if parameter.max is None else parameter.max
    return {"minimum": low, "maximum": high}


def _gpu(parameter: Parameter, offer: Offer | None) -> dict[str, Any]:
    low, high = int(parameter.min or 0), int(parameter.max or 0)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"flavor": {"type": "string"}, "count": {"type": "integer", "minimum": low, "maximum": high}},
        "required": ["count"],
        "additionalProperties": False,
    }
    if offer is None:
        return schema
    # One way per flavor, each with the most that it can give; "" leaves the choice to the queue.
    ways = [(choice.name, choice.most, choice.label) for choice in offer.flavors]
    if ways:
        ways.insert(0, ("", max(most for _, most, _ in ways), ""))
    branches: list[dict[str, Any]] = [
        {"properties": {"flavor": {"const": name}, "count": {"maximum": min(high, most)}}}
        | ({"title": label} if label else {})
        | ({"required": ["flavor"]} if name else {})
        for name, most, label in ways
    ]
    if low == 0:
        branches.append({"properties": {"count": {"const": 0}}})
    return {**schema, "anyOf": branches} if branches else {**schema, "not": {}}
