"""Consecutive lines of a stream as bytes, the form in which every part of the store hands them on."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from portal.logs.specs import Batch, Record


class Portion(NamedTuple):
    """Lines `first_line` to `end` (exclusive). Only the last of them may lack its line feed.

    `times`: a little-endian int64 for each line, nanoseconds since the epoch; empty where only the text was asked for.
    """

    first_line: int
    lines: int
    first_byte: int
    data: bytes
    times: bytes

    @property
    def end(self) -> int:
        return self.first_line + self.lines

    def records(self) -> list[Record]:
        stamps = struct.unpack(f"<{len(self.times) // 8}q", self.times)
        *whole, rest = self.data.split(b"\n")
        texts = [text + b"\n" for text in whole]
        if rest:
            texts.append(rest)
        return [Record(stamp, text) for stamp, text in zip(stamps, texts, strict=True)]

    def between(self, first: int, end: int | None = None) -> "Portion":
        """The lines of it from `first` on and before `end`."""
        skip = max(0, first - self.first_line)
        keep = self.lines if end is None else min(self.lines, end - self.first_line)
        if skip == 0 and keep == self.lines:
            return self
        start, stop = _offset(self.data, skip), _offset(self.data, keep)
        return Portion(
            first_line=self.first_line + skip,
            lines=keep - skip,
            first_byte=self.first_byte + start,
            data=self.data[start:stop],
            times=self.times[skip * 8 : keep * 8],
        )


def pack(first_line: int, first_byte: int, records: Sequence[Record]) -> Portion:
    """Records as a portion."""
    batch = records if isinstance(records, Batch) else Batch.of(records)
    times = struct.pack(f"<{len(batch)}q", *batch.times)
    return Portion(first_line, len(batch), first_byte, b"".join(batch.texts), times)


def lines_in(data: bytes) -> int:
    """How many lines a text has; what follows the last line feed is one."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def _offset(data: bytes, lines: int) -> int:
    """Where the line behind the first `lines` begins."""
    if lines == 0:
        return 0
    parts = data.split(b"\n", lines)
    # The last line may lack its line feed: then it ends with the text.
    return len(data) - len(parts[-1]) if len(parts) > lines else len(data)
