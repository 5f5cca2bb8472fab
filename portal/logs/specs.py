"""What goes into a log and what comes out of it. LINES.md says what a line is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Record(NamedTuple):
    """One line as it was written. `time_ns`: nanoseconds since the epoch; `text` ends with its line feed.

    Two kinds of record lack the line feed: a piece of a line longer than `policy.LINE_BYTES`, and the very last line
    of a stream whose program ended without writing one.
    """

    time_ns: int
    text: bytes


class Line(NamedTuple):
    """One line for a reader: its number from 1, its time, its text without the line feed.

    Bytes that are not UTF-8 became U+FFFD; a NUL stands as U+0000 and is shown by `policy.display_text`.
    """

    n: int
    time_ns: int
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """Lines `first` to `next` (exclusive). `complete`: nothing will ever follow `next`."""

    first: int
    next: int
    lines: Sequence[Line]
    complete: bool
    # Nothing is stored behind it at this moment.
    at_end: bool = False
    # Text of the line that is being written, for the live view; only where the page reaches the end.
    open_text: str = ""
