"""Records that wait to be numbered, as the bytes of one row. Pure."""

import base64
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from portal.logs.policy.collected import OpenLine, Seen, Span

_HEAD = struct.Struct("<qqqBI")
_WHOLE, _STDERR = 1, 2


def pack(records: Iterable[Seen]) -> bytes:
    parts = []
    for record in records:
        flags = (_WHOLE if record.whole else 0) | (_STDERR if record.pipe == "stderr" else 0)
        parts += [_HEAD.pack(record.time_ns, record.offset, record.end, flags, len(record.text)), record.text]
    return b"".join(parts)


def unpack(data: bytes) -> Iterator[Seen]:
    at = 0
    while at < len(data):
        time_ns, offset, end, flags, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        pipe = "stderr" if flags & _STDERR else "stdout"
        yield Seen(time_ns, offset, end, pipe, bool(flags & _WHOLE), data[at : at + size])
        at += size


def spans_to_json(spans: Iterable[Span]) -> list[list[int]]:
    return [list(span) for span in spans]


def spans_of(json: Iterable[Iterable[int]]) -> list[Span]:
    return [Span(*span) for span in json]


def open_lines_to_json(lines: dict[str, OpenLine]) -> dict[str, list[Any]]:
    """JSON knows no bytes."""
    return {pipe: [line.time_ns, base64.b64encode(line.text).decode()] for pipe, line in lines.items()}


def open_lines_of(json: dict[str, list[Any]]) -> dict[str, OpenLine]:
    return {pipe: OpenLine(time_ns, base64.b64decode(text)) for pipe, (time_ns, text) in json.items()}
