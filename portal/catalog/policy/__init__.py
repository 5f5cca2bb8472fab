"""Everything about definitions and values that can be worked out without a database."""

from portal.catalog.policy.clean import clean, defaults, wants_gpus
from portal.catalog.policy.faults import DefinitionInvalid
from portal.catalog.policy.formdata import from_form, to_form
from portal.catalog.policy.parse import parse_definition
from portal.catalog.policy.render import render
from portal.catalog.policy.schema import json_schema
from portal.catalog.policy.units import format_duration, format_memory, parse_duration, parse_memory

__all__ = [
    "DefinitionInvalid",
    "clean",
    "defaults",
    "format_duration",
    "format_memory",
    "from_form",
    "json_schema",
    "parse_definition",
    "parse_duration",
    "parse_memory",
    "render",
    "to_form",
    "wants_gpus",
]
