"""One checker per kind of parameter: from what was given to the canonical value, or `Bad` with the remedy.

JSON types are taken strictly (the text "5" is no number); what an HTML form sends goes through `from_form` first.
"""

import math
import re
from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

from portal.catalog.policy import limits
from portal.catalog.policy.kinds_structured import env_value, gpu_value
from portal.catalog.policy.units import format_duration, format_memory, parse_duration, parse_memory
from portal.catalog.policy.words import Bad, hint, listed, nearest, number, short, shown, utf8_size
from portal.catalog.specs import Kind, Offer, Parameter


def checked(parameter: Parameter, raw: object, offer: Offer | None) -> Any:
    """The canonical value (see `Filled`) of one parameter; for a secret its text. Raises `Bad`."""
    if raw == "" and parameter.kind not in _MAY_BE_EMPTY:
        raise Bad(_("It is empty. Fill it in."), code="required")
    return _CHECKS[parameter.kind](parameter, raw, offer)


def _text(parameter: Parameter, raw: object, _offer: Offer | None) -> str:
    if not isinstance(raw, str):
        raise Bad(_("It must be a text, not {given}.").format(given=shown(raw)), code="type")
    _fits(utf8_size(raw), limits.SCRIPT_BYTES, _("It has {size} bytes; {most} is the most."))
    length, least, most = len(raw), parameter.min_length, parameter.max_length
    if length < least:
        if not raw:
            raise Bad(_("It is empty. Fill it in."), code="required")
        message = _("It has {length} characters; {least} is the least.")
        raise Bad(message.format(length=number(length), least=number(least)), code="length")
    if most is not None and length > most:
        message = _("It has {length} characters; {most} is the most.")
        raise Bad(message.format(length=number(length), most=number(most)), code="length")
    if parameter.pattern and not re.fullmatch(parameter.pattern, raw):
        default = _("{given} does not match the pattern {pattern}.")
        raise Bad(parameter.pattern_help or default.format(given=shown(raw), pattern=parameter.pattern), code="pattern")
    return raw


def _script(_parameter: Parameter, raw: object, _offer: Offer | None) -> str:
    if not isinstance(raw, str):
        raise Bad(_("It must be a text, not {given}.").format(given=shown(raw)), code="type")
    message = _(
        "It has {size} bytes; {most} is the most, because it travels as one argument. "
        "Put the rest into the image or a file that the script fetches."
    )
    _fits(utf8_size(raw), limits.SCRIPT_BYTES, message)
    if not raw.strip():
        raise Bad(_("It is empty. Write at least one command."), code="required")
    return raw


def _integer(parameter: Parameter, raw: object, _offer: Offer | None) -> int:
    if isinstance(raw, float) and math.isfinite(raw) and raw.is_integer():
        raw = int(raw)  # JSON knows one kind of number: 5.0 is 5
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise Bad(_("It must be a whole number, not {given}.").format(given=shown(raw)), code="type")
    _in_range(parameter, raw, shown)
    return raw


def _number(parameter: Parameter, raw: object, _offer: Offer | None) -> int | float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise Bad(_("It must be a number, not {given}.").format(given=shown(raw)), code="type")
    if isinstance(raw, float) and not math.isfinite(raw):
        raise Bad(_("It must be a finite number; this one is too large or not a number."), code="type")
    if isinstance(raw, int) and abs(raw) > limits.LARGEST_INTEGER:
        try:
            raw = float(raw)
        except OverflowError:
            raise Bad(_("It must be a finite number; this one is too large."), code="range") from None
    _in_range(parameter, raw, shown)
    return raw


def _boolean(_parameter: Parameter, raw: object, _offer: Offer | None) -> bool:
    if not isinstance(raw, bool):
        raise Bad(_("It must be yes or no (true or false), not {given}.").format(given=shown(raw)), code="type")
    return raw


def _choice(parameter: Parameter, raw: object, _offer: Offer | None) -> str:
    values = [choice.value for choice in parameter.choices]
    if isinstance(raw, str) and raw in values:
        return raw
    if not isinstance(raw, str):
        message = _("It must be one of {allowed}, not {given}.")
        raise Bad(message.format(allowed=listed(values), given=shown(raw)), code="type")
    guess = nearest(raw, values)
    message = _("“{given}” is not one of {allowed}.").format(given=short(raw), allowed=listed(values))
    raise Bad(f"{message} {hint(raw, values)}" if guess else message, code="choice")


def _image(parameter: Parameter, raw: object, _offer: Offer | None) -> str:
    values = [choice.value for choice in parameter.choices]
    if isinstance(raw, str) and raw in values:
        return raw
    if not isinstance(raw, str):
        message = _("It must be the name of an image, not {given}. Allowed are: {allowed}.")
        raise Bad(message.format(given=shown(raw), allowed=listed(values)), code="type")
    message = _("The image “{given}” is not allowed. Allowed are: {allowed}.")
    raise Bad(message.format(given=short(raw), allowed=listed(values)), code="choice")


def _duration(parameter: Parameter, raw: object, _offer: Offer | None) -> int:
    seconds = parse_duration(raw) if isinstance(raw, str) else raw
    if seconds is None or isinstance(seconds, bool) or not isinstance(seconds, int | float):
        message = _("It must be a duration such as 2 h 30 min, 90 min or PT1H30M, not {given}.")
        raise Bad(message.format(given=shown(raw)), code="type")
    return _whole(parameter, seconds, lambda value: format_duration(int(value)), _("a whole number of seconds"))


def _memory(parameter: Parameter, raw: object, _offer: Offer | None) -> int:
    mib = parse_memory(raw) if isinstance(raw, str) else raw
    if mib is None or isinstance(mib, bool) or not isinstance(mib, int | float):
        message = _("It must be an amount of memory in GiB or MiB, such as 64 GiB, not {given}.")
        raise Bad(message.format(given=shown(raw)), code="type")
    return _whole(parameter, mib, lambda value: format_memory(int(value)), _("a whole number of MiB"))


def _secret(_parameter: Parameter, raw: object, _offer: Offer | None) -> str:
    # No message here may hold the value, not even a part of it.
    if not isinstance(raw, str):
        raise Bad(_("It must be a text."), code="type")
    message = _("It has {size} bytes; {most} is the most. Keep large files elsewhere and pass a key to them.")
    _fits(utf8_size(raw), limits.SECRET_BYTES, message)
    return raw


def _whole(parameter: Parameter, raw: float, words: Callable[[float], str], what: str) -> int:
    if isinstance(raw, float) and not (math.isfinite(raw) and raw.is_integer()):
        raise Bad(_("It must be {what}, not {given}.").format(what=what, given=shown(raw)), code="type")
    value = int(raw)
    _in_range(parameter, value, lambda v: words(v) if abs(v) <= limits.LARGEST_INTEGER and v >= 0 else shown(v))
    return value


def _in_range(parameter: Parameter, value: float, words: Callable[[float], str]) -> None:
    """Raises `Bad` with the number given and the bounds."""
    low, high = parameter.min, parameter.max
    if (low is None or value >= low) and (high is None or value <= high):
        return
    if low is not None and high is not None:
        message = _("It is {given}; it must be from {low} to {high}.")
    elif low is not None:
        message = _("It is {given}; {low} is the least.")
    else:
        message = _("It is {given}; {high} is the most.")
    bounds = {"low": "" if low is None else words(low), "high": "" if high is None else words(high)}
    raise Bad(message.format(given=words(value), **bounds), code="range")


def _fits(size: int, most: int, message: str) -> None:
    if size > most:
        raise Bad(message.format(size=number(size), most=number(most)), code="too_large")


_MAY_BE_EMPTY = frozenset({Kind.TEXT, Kind.SCRIPT, Kind.SECRET, Kind.ENV})
_CHECKS: dict[Kind, Callable[[Parameter, object, Offer | None], Any]] = {
    Kind.TEXT: _text,
    Kind.SCRIPT: _script,
    Kind.INTEGER: _integer,
    Kind.RUNS: _integer,
    Kind.NUMBER: _number,
    Kind.BOOLEAN: _boolean,
    Kind.CHOICE: _choice,
    Kind.IMAGE: _image,
    Kind.DURATION: _duration,
    Kind.MEMORY: _memory,
    Kind.SECRET: _secret,
    Kind.GPU: gpu_value,
    Kind.ENV: env_value,
}
