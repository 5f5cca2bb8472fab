"""What was measured, kept by measure in figures.json, and the table of it in a README between two marks."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.processes import BenchError
from tests.bench.table import Row, markdown

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


@dataclass(frozen=True)
class Taken:
    """One measure: its rows, when it began (UTC), at which commit, and the load average of the minute before."""

    rows: tuple[Row, ...]
    when: str
    commit: str
    load: float

    @property
    def words(self) -> str:
        return f"{self.when}, {self.commit}, load {self.load:.1f}"


def block(taken: Mapping[str, Taken], conditions: Sequence[str], *, quick: bool) -> str:
    """Table and conditions."""
    warning = "**A quick run: the counts are too small to mean anything.**\n\n" if quick else ""
    rows = [row for one in taken.values() for row in one.rows]
    began = "; ".join(f"{name} {one.words}" for name, one in taken.items())
    said = [*conditions, f"each measure's begin, commit, and load average of the minute before: {began}"]
    listed = "\n".join(f"- {each}" for each in said)
    return f"{warning}{markdown(rows)}\n\nConditions:\n\n{listed}\n"


def write(readme: Path, taken: Mapping[str, Taken], conditions: Sequence[str], *, order: Sequence[str]) -> None:
    """Put these measures among those that were taken before, and all of them between the README's marks.

    Raises BenchError if the file has no marks.
    """
    before, begin, rest = readme.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BenchError(f"{readme} has no place for the table: it needs {BEGIN} and {END}")
    kept = readme.with_name("figures.json")
    every = {**(_read(kept) if kept.exists() else {}), **taken}
    every = {name: every[name] for name in order if name in every}
    kept.write_text(json.dumps({name: dataclasses.asdict(one) for name, one in every.items()}, indent=1) + "\n")
    readme.write_text(f"{before}{BEGIN}\n\n{block(every, conditions, quick=False)}\n{END}{after}")


def _read(path: Path) -> dict[str, Taken]:
    found = json.loads(path.read_text())
    return {name: Taken(**one | {"rows": tuple(Row(**row) for row in one["rows"])}) for name, one in found.items()}
