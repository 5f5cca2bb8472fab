"""Reading what programs send: bounded JSON bodies and numbers of the query string."""

import json
from collections.abc import Mapping, Sequence
from typing import IO, Any

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from portal.core.errors import Problem, Refused

MAX_BODY = 4 * 1024 * 1024


class TooLarge(APIException):
    status_code = 413
    default_detail = (
        "The request is larger than 4 MiB. A script may have 100,000 bytes; larger files belong in storage."
    )


class BoundedJSONParser(BaseParser):
    """JSON of at most 4 MiB. NaN and Infinity are no JSON; a repeated key is refused instead of silently won."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        raw = stream.read(MAX_BODY + 1)
        if len(raw) > MAX_BODY:
            raise TooLarge
        try:
            return json.loads(raw.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_unique)
        except RecursionError as error:
            raise ParseError("The JSON is nested too deeply.") from error
        except ValueError as error:
            raise ParseError(f"This is not JSON: {error}.") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is there twice")
        found[key] = value
    return found


def whole_number(request: Request, name: str, *, default: int, least: int, most: int) -> int:
    """A whole number of the query string. Raises `Refused` naming the parameter and its range."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    # isdecimal refuses signs, spaces and exponents; the length keeps int() from long work.
    if not (text.isascii() and text.isdecimal() and len(text) <= 18) or not least <= int(text) <= most:
        raise Refused(Problem(name, f"“{text[:30]}” is not a whole number from {least:,} to {most:,}.", "out_of_range"))
    return int(text)


def choice(request: Request, name: str, words: Sequence[str]) -> str:
    """One of a few words of the query string, the first if left out. Raises `Refused` naming them."""
    text = request.query_params.get(name) or words[0]
    if text not in words:
        raise Refused(Problem(name, f"“{text[:30]}” is none of {', '.join(words)}.", "unknown"))
    return text
