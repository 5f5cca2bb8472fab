"""A search that finds nothing in a finished log of 1 GiB: plain and as an expression, by program and on the page."""

from __future__ import annotations

import os
import subprocess
import time
from urllib.parse import urlencode

from playwright.sync_api import Page

from tests.bench.biglog import BigLog, Reader, big_log
from tests.bench.chromium import signed_in
from tests.bench.context import Bench
from tests.bench.table import Row

MOST = 5.0
# What the page shows must move while one waits: at least so many different states of it.
STATES = 4
PLAIN = "no words of this log"
EXPRESSION = r"(Traceback|CUDA error|NCCL (WARN|ERROR)).*rank \d+"
# From the question to "not found", and each thing that stood in between.
LOOK = """([words, regex]) => new Promise((done) => {
  const form = document.querySelector("[data-log-search]");
  const said = form.querySelector("[data-log-hits]");
  const button = form.querySelector("[data-log-regex]");
  if ((button.getAttribute("aria-pressed") === "true") !== regex) button.click();
  const seen = new Set();
  const begin = performance.now();
  new MutationObserver((_, self) => {
    const text = said.textContent;
    if (/%/.test(text)) seen.add(text);
    else if (text) { self.disconnect(); done([(performance.now() - begin) / 1000, text, seen.size]); }
  }).observe(said, { childList: true, characterData: true, subtree: true });
  const field = form.querySelector("input");
  field.value = words;
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
})"""


def measure(bench: Bench) -> list[Row]:
    """A row for each kind of question."""
    log = bench.shared(big_log)
    reader = Reader(log.site)
    with signed_in(log.site.address) as page:
        page.goto(log.page)
        page.locator(f"#L{log.lines}").wait_for()
        return [
            _row(bench, log, reader, page, "plain words", PLAIN, regex=False),
            _row(bench, log, reader, page, "regular expression", EXPRESSION, regex=True),
        ]


def _row(bench: Bench, log: BigLog, reader: Reader, page: Page, kind: str, words: str, *, regex: bool) -> Row:
    plain = min(_grep(log, words, regex=regex) for _ in range(2))
    program = min(_through(log, reader, words, regex=regex) for _ in range(2))
    shown, said, states = page.evaluate(LOOK, [words, regex])
    assert said == "not found", said
    return Row(
        f"search that finds nothing in {log.words}, PostgreSQL: {kind}",
        f"{MOST:.0f} s with progress shown",
        f"page {shown:.1f} s, its progress in {states} steps; program {program:.1f} s",
        max(shown, program) <= MOST and (states >= STATES or bench.quick),
        f"`grep -ci` over the same file: {plain:.1f} s",
        shown / plain,
    )


def _grep(log: BigLog, words: str, *, regex: bool) -> float:
    """Seconds; capitals do not count, as on the page."""
    pattern = words.replace(r"\d", "[0-9]")
    begin = time.perf_counter()
    command = ["grep", "-c", "-i", "-E" if regex else "-F", "-e", pattern, str(log.file)]
    done = subprocess.run(command, env=os.environ | {"LC_ALL": "C.UTF-8"}, capture_output=True, check=False)
    assert done.stdout == b"0\n", done
    return time.perf_counter() - begin


def _through(log: BigLog, reader: Reader, words: str, *, regex: bool) -> float:
    """Seconds that a program needs for the requests of the page: one look back from the end, then everything."""
    question = urlencode({"q": words, "regex": "yes" if regex else "no"})
    address = f"streams/{log.stream}/search/?{question}"
    begin = time.perf_counter()
    reader.get(f"{address}&from={log.lines + 1}&limit=1&direction=backward")
    position: int | None = 1
    while position is not None:
        found = reader.get(f"{address}&from={position}&limit=5000")
        assert found["count"] == 0
        position = found["next"]
    return time.perf_counter() - begin
