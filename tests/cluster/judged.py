"""What is missing, doubled or torn in a log of numbered lines, and whether a declared gap says so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Judged:
    """Counts of lines. `silent`: missing or torn, and no gap beside them; `faults`: in words, the first few.

    `needless`: declared gaps beside which nothing is missing.
    """

    lines: int = 0
    missing: int = 0
    silent: int = 0
    doubled: int = 0
    needless: int = 0
    faults: list[str] = field(default_factory=list)

    def fault(self, words: str) -> None:
        if len(self.faults) < 10:
            self.faults.append(words)


def judge(text: bytes, gaps: Iterable[dict[str, Any]], *, lines: int, words: str) -> Judged:
    """Of a pod that wrote "1 words" to "<lines> words", and a stream with these gaps, as the API tells them.

    The runtime may tear the line that it is about to write when it changes files. Of a file that was left out, such a
    half remains beside the gap, as a line of its own or behind the half of another.
    """
    declared = {gap["before"] for gap in gaps}
    tail = words.encode()
    whole = re.compile(rb"([1-9]\d*) " + re.escape(tail))
    found = Judged()
    true: set[int] = set()
    last = last_at = 0
    for at, line in enumerate([*text.splitlines(), b"%d %s" % (lines + 1, tail)], 1):
        match = whole.fullmatch(line)
        if match is None:
            true |= {at, at + 1}
            if not declared & {at, at + 1}:
                found.silent += 1
                found.fault(f"line {at} is torn: {line[:80]!r}")
            continue
        number = int(match[1])
        found.lines += number <= lines
        if number <= last:
            found.doubled += 1
            found.fault(f"line {at} is {number}, behind {last}")
            continue
        if number != last + 1:
            found.missing += number - last - 1
            true |= set(range(last_at + 1, at + 1))
            if not declared & set(range(last_at + 1, at + 1)):
                found.silent += number - last - 1
                found.fault(f"{number - last - 1} lines are missing before line {at}")
        last, last_at = number, at
    found.needless = len(declared - true)
    return found
