"""`make bench`, or `python -m tests.bench [measure ...]`: the table of `tests/bench/README.md`, taken anew."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.bench import conditions, report
from tests.bench.context import Bench
from tests.bench.table import Row, markdown

# In this order; each is the module of the same name, but for `list`, which is a word of Python's.
MEASURES: tuple[str, ...] = ("demo", "memory", "list", "visible", "submit", "dispatch", "backlog", "chaos")
# Logs, from the pod to the store.
MEASURES += ("logcut", "logstop", "logcollect", "logspeed", "logmany", "logoutage", "logmemory")
MODULES = {"list": "joblist"}
# What readers of logs wait for.
NAMES: tuple[str, ...] = (*MEASURES, "logframe", "logviewers", "logopen", "logsearch")


def main() -> int:
    """0; 1 if a measure could not be taken. A missed target is a result, no failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure, and print the table.")
    parser.add_argument("measures", nargs="*", metavar="measure", help=f"all, or some of: {' '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="few of everything: whether the measures work, no result")
    parser.add_argument(
        "--write", type=Path, metavar="README", help="keep these figures, and put the table between its marks"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="work in this new folder and leave it, logs and all"
    )
    chosen = parser.parse_args()
    if chosen.write and chosen.quick:
        parser.error("a quick run is no result: nothing to write down")
    unknown = [name for name in chosen.measures if name not in NAMES]
    if unknown:
        parser.error(f"no measure is called {unknown[0]!r}; there are: {' '.join(NAMES)}")
    names = [name for name in NAMES if not chosen.measures or name in chosen.measures]
    # Ended from outside, what was started ends too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with _folder(chosen.keep) as folder:
        bench = Bench(folder, quick=chosen.quick)
        try:
            taken, failed = _take(bench, names, partial(_keep, chosen.write))
            notes = [f"could not be taken: {', '.join(failed)}"] if failed else []
        finally:
            bench.close()
    print(report.block(taken, [*conditions.lines(), *notes], quick=chosen.quick))
    return 1 if failed else 0


def _keep(readme: Path | None, taken: dict[str, report.Taken]) -> None:
    if readme is not None:
        report.write(readme, taken, conditions.lines(), order=NAMES)


@contextlib.contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True)
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="beamtime-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _take(
    bench: Bench, names: list[str], keep: Callable[[dict[str, report.Taken]], None]
) -> tuple[dict[str, report.Taken], list[str]]:
    """What was measured, by name, each kept at once, and what broke, which costs no other measure."""
    taken: dict[str, report.Taken] = {}
    failed = []
    for name in names:
        conditions.until_quiet()
        moment, load = conditions.moment(), conditions.load()
        bench.say(f"{name}: load {load:.1f}")
        try:
            found: list[Row] = importlib.import_module(f"tests.bench.{MODULES.get(name, name)}").measure(bench)
        except Exception:
            traceback.print_exc()
            failed.append(name)
            continue
        taken[name] = report.Taken(tuple(found), moment, conditions.commit(), load)
        keep({name: taken[name]})
        print(markdown(found), file=sys.stderr, flush=True)
    return taken, failed


if __name__ == "__main__":
    sys.exit(main())
