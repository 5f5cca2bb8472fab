"""Many lines as one segment: independent compressed blocks and an index of them. Pure; README.md describes the form.

A segment is never changed. Its first byte of index names the form, so that a later one can be told from this one.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from isal import isal_zlib

from portal.logs.store.portion import Portion, lines_in

# What a reader of one line has to decompress; empty lines are bounded by their number instead.
BLOCK_BYTES = 256 * 1024
BLOCK_LINES = 16 * 1024
# A segment is closed by the chunk that reaches one of these.
SEGMENT_BYTES = 4 * 1024 * 1024
SEGMENT_LINES = 384 * 1024

_FORM = b"\x01"
# Of a block: first line, first byte (both from the segment's), offset in the body, sizes of packed text and times.
_ENTRY = struct.Struct("<5I")
# zlib's format, written and read by another library: at this level nine times as fast as zlib's own 4, for a twentieth
# more space.
_LEVEL = 2
_TWO_64, _TWO_63 = 1 << 64, 1 << 63


class Damaged(ValueError):
    """Stored lines do not fit together; the message says which and how."""


@dataclass(frozen=True, slots=True)
class Built:
    """A segment. `size`: bytes of its text; `sha256`: of the text, in hexadecimal."""

    first_line: int
    lines: int
    first_byte: int
    size: int
    sha256: str
    index: bytes
    body: bytes


class Block(NamedTuple):
    """Where one block lies. `line` and `byte` count from the segment's first; `at` is an offset in its body."""

    line: int
    lines: int
    byte: int
    size: int
    at: int
    text_size: int
    times_size: int

    @property
    def stop(self) -> int:
        return self.at + self.text_size + self.times_size


def build(portions: Sequence[Portion]) -> Built:
    """Consecutive portions, with their times, as one segment. Raises `Damaged` if they are not consecutive."""
    check(portions)
    first = portions[0]
    index, body, digest = [_FORM], [], hashlib.sha256()
    line = byte = at = 0
    for group in _groups(portions):
        text = b"".join([portion.data for portion in group])
        digest.update(text)
        packed = isal_zlib.compress(text, _LEVEL)
        times = isal_zlib.compress(_deltas(b"".join([portion.times for portion in group])), _LEVEL)
        index.append(_ENTRY.pack(line, byte, at, len(packed), len(times)))
        body += [packed, times]
        line, byte = line + sum(portion.lines for portion in group), byte + len(text)
        at += len(packed) + len(times)
    return Built(first.first_line, line, first.first_byte, byte, digest.hexdigest(), b"".join(index), b"".join(body))


def check(portions: Iterable[Portion]) -> None:
    """Raise `Damaged` unless each portion is whole and begins where the one before it ended."""
    before: Portion | None = None
    for portion in portions:
        if not portion.lines == lines_in(portion.data) == len(portion.times) // 8:
            raise Damaged(
                f"lines {portion.first_line} to {portion.end - 1}: "
                f"{lines_in(portion.data)} lines of text, {len(portion.times) // 8} times"
            )
        if before is not None:
            wanted = before.end, before.first_byte + len(before.data)
            if (portion.first_line, portion.first_byte) != wanted:
                raise Damaged(
                    f"line {wanted[0]} at byte {wanted[1]} should follow, "
                    f"but line {portion.first_line} at byte {portion.first_byte} does"
                )
        before = portion


def _groups(portions: Sequence[Portion]) -> Iterator[Sequence[Portion]]:
    """Portions in groups, each of which becomes a block. A text without a line feed ends its block."""
    start = size = lines = 0
    for position, portion in enumerate(portions):
        full = size + len(portion.data) > BLOCK_BYTES or lines + portion.lines > BLOCK_LINES
        if position > start and (full or not portions[position - 1].data.endswith(b"\n")):
            yield portions[start:position]
            start, size, lines = position, 0, 0
        size, lines = size + len(portion.data), lines + portion.lines
    yield portions[start:]


def read_index(index: bytes, *, lines: int, size: int) -> list[Block]:
    """The blocks of a segment of so many lines and bytes. Raises `Damaged`."""
    if index[:1] != _FORM or (len(index) - 1) % _ENTRY.size:
        raise Damaged(f"an index of form {index[:1].hex()} and {len(index)} bytes")
    rows = [*_ENTRY.iter_unpack(index[1:])]
    ends = [(row[0], row[1]) for row in rows[1:]] + [(lines, size)]
    return [
        Block(line, end - line, byte, end_byte - byte, at, text_size, times_size)
        for (line, byte, at, text_size, times_size), (end, end_byte) in zip(rows, ends, strict=True)
    ]


def unpack_text(block: Block, body: bytes, at: int = 0) -> bytes:
    """The text of a block; `body` begins at offset `at` of the segment's. Raises `Damaged`."""
    start = block.at - at
    text = _inflate(body[start : start + block.text_size], block.size)
    if len(text) != block.size:
        raise Damaged(f"a block of {block.size} bytes holds {len(text)}")
    return text


def unpack_times(block: Block, body: bytes, at: int = 0) -> bytes:
    """The times of a block's lines, as in `Portion`. Raises `Damaged`."""
    start = block.at - at + block.text_size
    mixed = _inflate(body[start : start + block.times_size], block.lines * 8)
    if len(mixed) != block.lines * 8:
        raise Damaged(f"a block of {block.lines} lines holds {len(mixed) // 8} times")
    packed = bytearray(len(mixed))
    for place in range(8):
        packed[place::8] = mixed[place * block.lines : (place + 1) * block.lines]
    steps = struct.unpack(f"<{block.lines}q", packed)
    stamps = [(stamp + _TWO_63) % _TWO_64 - _TWO_63 for stamp in accumulate(steps)]
    return struct.pack(f"<{block.lines}q", *stamps)


def _inflate(packed: bytes, size: int) -> bytes:
    try:
        return isal_zlib.decompress(packed, bufsize=max(size, 1))
    except isal_zlib.error as error:  # type: ignore[misc]  # its stubs take the class for an instance
        raise Damaged(f"a block cannot be decompressed: {error}") from error


def _deltas(times: bytes) -> bytes:
    """Steps from each time to the next, all their first bytes together, then all their second ones, and so on.

    Neighbours in time differ in few bits: the upper bytes are long rows of zeros.
    """
    stamps = struct.unpack(f"<{len(times) // 8}q", times)
    steps = [stamps[0], *[(b - a) % _TWO_64 for a, b in pairwise(stamps)]]
    packed = struct.pack(f"<{len(steps)}Q", steps[0] % _TWO_64, *steps[1:])
    return b"".join([packed[place::8] for place in range(8)])
