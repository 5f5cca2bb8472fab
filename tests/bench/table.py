"""What a measure answers, the few statistics that it needs, and the table that comes of all answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

HEAD = ("measure", "at least", "measured", "", "plain reference, same run", "times the reference")


@dataclass(frozen=True)
class Row:
    """One line of the table. `met` is None where there is nothing to miss; `ratio` is measured / reference."""

    measure: str
    target: str
    measured: str
    met: bool | None
    reference: str
    ratio: float | None = None

    def cells(self) -> tuple[str, ...]:
        word = {True: "met", False: "**missed**", None: ""}[self.met]
        return (self.measure, self.target, self.measured, word, self.reference, _times(self.ratio))


def _times(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest rank: the smallest value that at least `share` (0 to 1) of all do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


def ms(seconds: float) -> str:
    """Seconds as milliseconds in words; seconds above ten of them."""
    return f"{seconds * 1000:.0f} ms" if abs(seconds) < 10 else f"{seconds:.1f} s"


def spread(values: Sequence[float], *shares: float) -> str:
    """ "p50 12 ms, p95 40 ms (n = 200)"."""
    words = ", ".join(f"p{share * 100:.0f} {ms(percentile(values, share))}" for share in shares)
    return f"{words} (n = {len(values)})"


def markdown(rows: Sequence[Row]) -> str:
    """The table, aligned so that it reads well in a terminal too."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    padded = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([padded[0], rule, *padded[1:]])
