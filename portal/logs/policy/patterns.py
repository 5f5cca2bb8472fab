"""Finding text in lines, with a bound on the work that any pattern can cause.

Regular expressions are RE2's (https://github.com/google/re2/wiki/Syntax): its time grows with the text and never with
the number of ways in which a pattern may match, it lets go of Python's lock while it looks, and its memory is bounded.
A backtracking engine with a time limit would end a bad pattern too, but only after that time, on every portion.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import re2

LONGEST = 500
# Of a compiled expression, in bytes. A larger one is refused: one of this size may take a second for 256 KiB.
_PROGRAM_BYTES = 128 * 1024
# What the automaton may grow to while it runs.
_RUNNING_BYTES = 4 * 1024 * 1024
# Anchors of the whole text, single bytes, and switching off "line by line" would depend on where a portion begins.
_NOT_BY_LINE = re.compile(r"\\[AzC]|\(\?[A-Za-z]*-[A-Za-z]*m")
# What a screen does not show: colours and all other sequences of a terminal. Never more than one line.
_SEQUENCES = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    rb"|\x1b[PX^_][^\x1b\n]*(?:\x1b\\)?|\x1b[ -/]*[0-Z\\^-~]"
)
_SEQUENCES_IN_TEXT = re.compile(_SEQUENCES.pattern.decode("ascii"))


class BadPattern(ValueError):
    """The pattern cannot be used; the message says why, and what would do."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is looked for, line by line."""

    # Position of the first hit in `data` at or behind a position, -1 without one.
    find: Callable[[bytes, int], int]
    # Where the hits lie in one line's text, in characters: [begin, end).
    spans: Callable[[str], list[tuple[int, int]]]
    # Whether one call may take long, so that the caller should hand in little at a time.
    slow: bool


def visible(data: bytes) -> bytes:
    """Text without the terminal's sequences: line feeds stay, and with them every line's number."""
    return _SEQUENCES.sub(b"", data) if b"\x1b" in data else data


def visible_text(text: str) -> str:
    """The same for one line's text."""
    return _SEQUENCES_IN_TEXT.sub("", text) if "\x1b" in text else text


def pattern_of(text: str, *, regex: bool, case: bool) -> Pattern:
    """What `text` asks for. Raises `BadPattern`."""
    if not text:
        raise BadPattern("Say what to look for.")
    if len(text) > LONGEST:
        raise BadPattern(f"At most {LONGEST} characters can be looked for; this has {len(text):,}.")
    if "\n" in text or "\r" in text or "\0" in text:
        raise BadPattern("A line is searched at a time: leave out line ends.")
    if not regex and case:
        return _plain(text)
    if regex and _NOT_BY_LINE.search(text):
        raise BadPattern("A line is searched at a time: use ^ and $ for its beginning and end.")
    return _expression(text if regex else re2.escape(text), case=case)


def _plain(text: str) -> Pattern:
    wanted = text.encode("utf-8", "replace")

    def spans(line: str) -> list[tuple[int, int]]:
        found, at = [], line.find(text)
        while at >= 0:
            found.append((at, at + len(text)))
            at = line.find(text, at + len(text))
        return found

    return Pattern(lambda data, position: data.find(wanted, position), spans, slow=False)


def _expression(text: str, *, case: bool) -> Pattern:
    source = ("(?m)" if case else "(?mi)") + text
    try:
        raw = source.encode()
        re2.compile(raw, _options(_PROGRAM_BYTES))
        compiled = re2.compile(raw, _options(_RUNNING_BYTES))
        in_text = re2.compile(source, _options(_RUNNING_BYTES))
    except UnicodeEncodeError:
        raise BadPattern("This holds characters that no text can have.") from None
    except re2.error as error:
        raise BadPattern(_why(error)) from None

    def find(data: bytes, position: int) -> int:
        match = compiled.search(data, position)
        return match.start() if match is not None else -1

    def spans(line: str) -> list[tuple[int, int]]:
        return [(begin, end) for begin, end in (match.span() for match in in_text.finditer(line)) if end > begin]

    return Pattern(find, spans, slow=True)


def _options(size: int) -> re2.Options:
    options = re2.Options()
    options.max_mem = size
    options.never_nl = True
    options.never_capture = True
    options.log_errors = False
    return options


def _why(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    words = re.sub(r"\(\?mi?\)", "", words)
    if "too large" in words:
        return "This expression is too large: shorten its repetitions."
    if "invalid perl operator" in words:
        return f"Looking ahead, looking back and back references are not possible here ({words})."
    return f"This is not a regular expression: {words}."
