"""Rules of the log: where a long line is cut, how lines are packed into chunks, what a line looks like on a screen."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from portal.logs.specs import Batch, Record

# A longer line is numbered as several: no reader, parser or page ever has to hold more than this at once.
LINE_BYTES = 256 * 1024
CHUNK_BYTES = 64 * 1024
CHUNK_LINES = 500
# What a page shows of one line; the download has all of it.
DISPLAY_BYTES = 8 * 1024

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RESET = re.compile(r"\x1b\[(?:0*;)*0*m")
_TORN_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*)?$")
_KEPT_COLOURS = 16


def cut(body: bytes | bytearray) -> int:
    """Where a line without its line feed, longer than `LINE_BYTES`, is cut; depends on its first bytes only.

    After the last carriage return of the second half, so that a progress bar is not torn in the middle of a state;
    else before the character that would not fit.
    """
    back = body.rfind(b"\r", LINE_BYTES // 2, LINE_BYTES)
    if back >= 0:
        return back + 1
    for end in range(LINE_BYTES, LINE_BYTES - 4, -1):
        if body[end] & 0xC0 != 0x80:  # not inside a UTF-8 sequence
            return end
    return LINE_BYTES


def pieces(text: bytes) -> list[bytes]:
    """A line, with or without its line feed, as the texts of one or more records."""
    found = []
    body = len(text) - text.endswith(b"\n")
    while body > LINE_BYTES:
        end = cut(text)
        found.append(text[:end])
        text = text[end:]
        body -= end
    return [*found, text]


def is_record(text: bytes) -> bool:
    """Whether a text may be stored as one numbered line."""
    feed = text.find(b"\n")
    return bool(text) and feed in (-1, len(text) - 1) and len(text) - (feed >= 0) <= LINE_BYTES


def packs(records: Sequence[Record]) -> Iterator[Batch]:
    """Records in groups, each of which may be one chunk.

    A record without a line feed ends its chunk, so that the lines of a chunk are found by their line feeds.
    """
    batch = records if isinstance(records, Batch) else Batch.of(records)
    sizes = list(accumulate(map(len, batch.texts), initial=0))
    ends = [at for at, text in enumerate(batch.texts, 1) if text[-1:] != b"\n"]
    start, turn = 0, 0
    while start < len(batch):
        end = min(start + CHUNK_LINES, bisect_right(sizes, sizes[start] + CHUNK_BYTES) - 1)
        if turn < len(ends) and ends[turn] <= end:
            end = ends[turn]
        end = max(end, start + 1)
        turn += turn < len(ends) and ends[turn] <= end
        yield batch[start:end]
        start = end


def joins(*, before: tuple[int, int], lines: int, size: int) -> bool:
    """Whether the chunk `before` (lines, bytes) is merged with new text behind it.

    Only into something at least as large: a line is then written anew at most log2(CHUNK_LINES) times, however
    small the appends are.
    """
    return before[0] <= lines and before[0] + lines <= CHUNK_LINES and before[1] + size <= CHUNK_BYTES


def decode(text: bytes) -> str:
    """A stored text as people read it: UTF-8 with replacement, without its line feed."""
    return text.removesuffix(b"\n").decode("utf-8", "replace")


def display_text(text: str) -> str:
    """What a screen shows of a line: the last state that its carriage returns left, of at most `DISPLAY_BYTES`.

    A progress bar of 200 steps is one short line. Colours set by overwritten text still count. NUL is shown as ␀.
    """
    shown = text.rstrip("\r")
    start = shown.rfind("\r") + 1
    if start:
        shown = _colours(shown[:start]) + shown[start:]
    return _bounded(shown.replace("\0", "␀"))


def _colours(hidden: str) -> str:
    """The colour codes of overwritten text that are still in force at its end."""
    if "\x1b" not in hidden:
        return ""
    codes: list[str] = _COLOUR.findall(hidden)
    for position in range(len(codes) - 1, -1, -1):
        if _RESET.fullmatch(codes[position]):
            codes = codes[position:]
            break
    return "".join(codes[-_KEPT_COLOURS:])


def _bounded(text: str) -> str:
    if len(text) * 4 <= DISPLAY_BYTES:
        return text
    raw = text.encode("utf-8", "replace")
    if len(raw) <= DISPLAY_BYTES:
        return text
    head = raw[: DISPLAY_BYTES - 48].decode("utf-8", "ignore")
    head = _TORN_ESCAPE.sub("", head)
    return f"{head}… ({len(raw) - len(head.encode()):,} more bytes in the download)"
