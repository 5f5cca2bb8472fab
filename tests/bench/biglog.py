"""A finished log of 10,000,000 lines and 1 GiB: in PostgreSQL, sealed, with a web process in front; and as a file."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.bench.browser import IDLE
from tests.bench.context import Bench
from tests.bench.sites import PERSON, TEAM, Server, run

LINES, FEW = 10_000_000, 300_000


class Reader:
    """A program with a person's token, over one kept connection."""

    def __init__(self, site: Server) -> None:
        self._line, self._used_at = HTTPConnection("127.0.0.1", site.port, timeout=60), time.monotonic()
        self._headers = {"Authorization": f"Bearer {site.manage('token', PERSON).strip().splitlines()[-1]}"}

    def get(self, path: str) -> Any:
        """JSON; `path` is below /api/v1/."""
        if time.monotonic() - self._used_at > IDLE:
            self._line.close()
        self._line.request("GET", f"/api/v1/{path}", headers=self._headers)
        answer = self._line.getresponse()
        body = answer.read()
        self._used_at = time.monotonic()
        assert answer.status == 200, body
        return json.loads(body)


@dataclass(frozen=True)
class BigLog:
    """Where it is. `file` has the very same text."""

    site: Server
    job: str
    stream: str
    lines: int
    file: Path
    words: str

    @property
    def page(self) -> str:
        return f"{self.site.address}/teams/{TEAM}/jobs/{self.job}/log/"


@contextlib.contextmanager
def big_log(bench: Bench) -> Iterator[BigLog]:
    """For `Bench.shared`."""
    lines = bench.count(LINES, FEW)
    site = Server(bench.fresh("biglog"))
    try:
        site.prepare()
        bench.say(f"writing and sealing {lines:,} lines")
        begin, file = time.monotonic(), site.folder / "whole.log"
        made = verb(site.environment(), "write", TEAM, lines, file, "yes")
        bench.say(f"{made['bytes'] / 2**20:.0f} MiB in {time.monotonic() - begin:.0f} s")
        site.start()
        words = "1 GiB" if not bench.quick else f"{made['bytes'] / 2**20:.0f} MiB"
        yield BigLog(site, made["job"], made["stream"], lines, file, words)
    finally:
        site.close()


def verb(environment: dict[str, str], name: str, *arguments: object) -> Any:
    """The answer of a function of `tests.bench.logverbs`, run in a process of the portal's own."""
    said = run(["-m", "tests.bench.logverbs", name, *map(str, arguments)], environment)
    return json.loads(said.splitlines()[-1])
