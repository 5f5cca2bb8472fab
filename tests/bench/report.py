"""The result as Markdown, and its place in a README between two marks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.bench.processes import BenchError
from tests.bench.table import Row, markdown

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def block(rows: Sequence[Row], notes: Sequence[str], *, quick: bool) -> str:
    """Table and conditions."""
    warning = "**A quick run: the counts are too small to mean anything.**\n\n" if quick else ""
    listed = "\n".join(f"- {note}" for note in notes)
    return f"{warning}{markdown(rows)}\n\nConditions:\n\n{listed}\n"


def write(readme: Path, text: str) -> None:
    """Replace what stands between the marks. Raises BenchError if the file has no marks."""
    before, begin, rest = readme.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BenchError(f"{readme} has no place for the table: it needs {BEGIN} and {END}")
    readme.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")
