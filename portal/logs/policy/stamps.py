"""Time stamps of the container runtime and of the log endpoint: RFC 3339 with nanoseconds. Pure."""

import re
from datetime import datetime
from functools import lru_cache

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)(?: |\n|$)")
NANO = 1_000_000_000


def stamp(line: bytes) -> tuple[int, int] | None:
    """(nanoseconds since the epoch, length of the prefix) of a line with a time; None without."""
    if line[29:31] == b"Z " and line[19:20] == b"." and line[20:29].isdigit():
        second = second_of(line[:19], b"Z")
        return None if second is None else (second * NANO + int(line[20:29]), 31)
    found = _STAMP.match(line)
    if found is None:
        return None
    second = second_of(found[1], found[3])
    if second is None:
        return None
    end = found.end() - found[0].endswith(b"\n")
    return second * NANO + int((found[2] or b"0").ljust(9, b"0")), end


@lru_cache(maxsize=64)
def second_of(moment: bytes, zone: bytes) -> int | None:
    """Seconds since the epoch of `2026-11-30T14:00:00` in the zone `Z` or `+01:00`; None if it is none."""
    try:
        return int(datetime.fromisoformat((moment + zone.replace(b"Z", b"+00:00")).decode()).timestamp())
    except ValueError:
        return None
