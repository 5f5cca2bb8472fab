"""Time stamps of the container runtime and of the log endpoint: RFC 3339 with nanoseconds. Pure."""

import re
from datetime import datetime
from functools import lru_cache

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)(?: |\n|$)")
_NANO = 1_000_000_000


def stamp(line: bytes) -> tuple[int, int] | None:
    """(nanoseconds since the epoch, length of the prefix) of a line with a time; None without."""
    if line[29:31] == b"Z " and line[19:20] == b"." and line[20:29].isdigit():
        second = _second(line[:19], b"Z")
        return None if second is None else (second * _NANO + int(line[20:29]), 31)
    found = _STAMP.match(line)
    if found is None:
        return None
    second = _second(found[1], found[3])
    if second is None:
        return None
    end = found.end() - found[0].endswith(b"\n")
    return second * _NANO + int((found[2] or b"0").ljust(9, b"0")), end


@lru_cache(maxsize=64)
def _second(moment: bytes, zone: bytes) -> int | None:
    try:
        return int(datetime.fromisoformat((moment + zone.replace(b"Z", b"+00:00")).decode()).timestamp())
    except ValueError:
        return None
