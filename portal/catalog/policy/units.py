"""Durations and memory as people write them, and back. The grammars serve the parser and the API schema alike."""

import re
from decimal import ROUND_CEILING, Decimal

_N = r"[0-9]{1,9}(?:\.[0-9]{1,3})?"
# "2 h 30 min", "90 min", "1 d", "PT1H30M", or whole seconds; units from large to small, each once.
DURATION_PATTERN = (
    r"^(?:[0-9]{1,9}"
    rf"|(?=[0-9])(?:{_N} ?(?:d|days?) ?)?(?:{_N} ?(?:h|hrs?|hours?) ?)?"
    rf"(?:{_N} ?(?:m|mins?|minutes?) ?)?(?:{_N} ?(?:s|secs?|seconds?))?"
    r"|P(?=[0-9T])(?:[0-9]{1,6}D)?(?:T(?=[0-9])(?:[0-9]{1,9}H)?(?:[0-9]{1,9}M)?(?:[0-9]{1,9}S)?)?"
    r")(?![\s\S])"
)
# "64 GiB", "512MiB", Kubernetes' "64Gi", or whole MiB.
MEMORY_PATTERN = rf"^(?:[0-9]{{1,9}}|{_N} ?[MGT]i(?:B|b)?)(?![\s\S])"

_DURATION = re.compile(DURATION_PATTERN)
_MEMORY = re.compile(MEMORY_PATTERN)
_PART = re.compile(r"([0-9.]+) ?([A-Za-z]+)")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_MIB = {"M": 1, "G": 1_024, "T": 1_024 * 1_024}


def parse_duration(text: str) -> int | None:
    """Whole seconds (a fraction is rounded up) of a duration in words or ISO 8601; None if it is none of these."""
    text = " ".join(text.split())
    if not _DURATION.match(text):
        return None
    if text.isdecimal():
        return int(text)
    words = text.removeprefix("P").replace("T", "")
    total = sum(Decimal(number) * _SECONDS[unit[0].lower()] for number, unit in _PART.findall(words))
    return int(Decimal(total).to_integral_value(rounding=ROUND_CEILING))


def parse_memory(text: str) -> int | None:
    """Whole MiB (a fraction is rounded up) of an amount of memory in words; None if it is none."""
    text = " ".join(text.split())
    if not _MEMORY.match(text):
        return None
    if text.isdecimal():
        return int(text)
    ((number, unit),) = _PART.findall(text)
    return int((Decimal(number) * _MIB[unit[0]]).to_integral_value(rounding=ROUND_CEILING))


def format_duration(seconds: int) -> str:
    """The duration in words that `parse_duration` reads back: 5400 -> "1 h 30 min"."""
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def format_memory(mib: int) -> str:
    """The amount in words that `parse_memory` reads back: 65536 -> "64 GiB", 1536 -> "1536 MiB"."""
    return f"{mib // 1_024} GiB" if mib and mib % 1_024 == 0 else f"{mib} MiB"
