"""What goes into a log and what comes out of it. LINES.md says what a line is."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, overload


class Record(NamedTuple):
    """One line as it was written. `time_ns`: nanoseconds since the epoch; `text` ends with its line feed.

    Two kinds of record lack the line feed: a piece of a line longer than `policy.LINE_BYTES`, and the very last line
    of a stream whose program ended without writing one.
    """

    time_ns: int
    text: bytes


class Batch(Sequence[Record]):
    """Records as two columns, so that a hundred thousand of them a second cost no object each.

    `times` and `texts` have the same length and are never changed. `trusted`: whoever made it has seen to it that
    every text is one line.
    """

    __slots__ = ("texts", "times", "trusted")

    def __init__(self, times: "array[int]", texts: list[bytes], *, trusted: bool = False) -> None:
        self.times, self.texts, self.trusted = times, texts, trusted

    @classmethod
    def of(cls, records: Iterable[Record], *, trusted: bool = False) -> "Batch":
        found = list(records)
        return cls(array("q", [each.time_ns for each in found]), [each.text for each in found], trusted=trusted)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> "Batch": ...
    def __getitem__(self, index: int | slice) -> "Record | Batch":
        if isinstance(index, slice):
            return Batch(self.times[index], self.texts[index], trusted=self.trusted)
        return Record(self.times[index], self.texts[index])

    def __len__(self) -> int:
        return len(self.texts)

    def __add__(self, other: "Batch") -> "Batch":
        return Batch(self.times + other.times, self.texts + other.texts, trusted=self.trusted and other.trusted)


class Loss(NamedTuple):
    """Lines that could not be had, before the line of this number; the fields are those of `models.Gap`."""

    before_line: int
    cause: str
    after_ns: int | None = None
    until_ns: int | None = None
    lines: int | None = None
    bytes: int | None = None


class Taken(Enum):
    """What became of lines that were handed to `services.append`. Only `REFUSED` is false."""

    # The cursor is not there any more, or the stream is complete: nothing was stored.
    REFUSED = auto()
    STORED = auto()
    # The job has stored as much as it may: counted and left out, the cursor stays where it is.
    LEFT_OUT = auto()

    def __bool__(self) -> bool:
        return self is not Taken.REFUSED


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
    # Why there is no text although there were lines: the team's retention ended. "" while there is.
    expired: str = ""
