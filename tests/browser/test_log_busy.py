"""A live log while hundreds submit at once: a demo of its own, whose jobs end with it."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.browser.demo import Demo, wait_until

SUBMISSIONS, AT_ONCE = 300, 30
# A tick each fifth of a second; a machine of two cores under this load may be late, but not for as long as this.
LATE_SECONDS = 20
GROWTH_MIB = 256


@pytest.fixture
def own_demo(tmp_path: Path) -> Iterator[Demo]:
    running = Demo(tmp_path)
    yield running
    running.close()


class Tail:
    """Who listens to a log by events, in a thread of its own: its lines, and when each came."""

    def __init__(self, demo: Demo, stream: str) -> None:
        self.lines: list[tuple[int, str]] = []
        self.came: list[float] = []
        self.end: Any = None
        self._connection = HTTPConnection("127.0.0.1", demo.port, timeout=LATE_SECONDS * 2)
        self._connection.request("GET", f"/live/v1/streams/{stream}/events", headers=demo.headers())
        self._answer = self._connection.getresponse()
        assert self._answer.status == HTTPStatus.OK
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        event = ""
        for raw in self._answer:
            name, _, text = raw.decode().rstrip("\n").partition(": ")
            if name == "event":
                event = text
            elif name == "data" and event == "end":
                self.end = json.loads(text)
                return
            elif name == "data":
                frame = json.loads(text)
                assert frame["type"] == "lines"
                self.lines += [(n, words) for n, _, words in frame["lines"]]
                self.came += [time.monotonic()] * len(frame["lines"])

    def close(self) -> None:
        self._thread.join(60)
        self._connection.close()


def resident_mib(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def test_case_49_a_live_tail_and_the_health_check_go_on_while_hundreds_submit(own_demo: Demo) -> None:
    demo = own_demo
    job = demo.python("import time\nfor n in range(10**6):\n    print('tick', n + 1, flush=True)\n    time.sleep(0.2)")
    demo.wait(job, "running")
    tail = Tail(demo, str(demo.job(job)["streams"][0]["id"]))
    wait_until(lambda: len(tail.lines) > 3, "the tail has begun")
    before, began = resident_mib(demo.process.pid), time.monotonic()
    healths: list[tuple[int, float]] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.5):
            asked = time.monotonic()
            healths.append((demo.ask("GET", "/healthz")[0], time.monotonic() - asked))

    def submit(n: int) -> str | None:
        """The new job's id; None if the portal said that it is too much now, and when to try again."""
        body = {"team": "vision", "template": "script", "name": f"busy {n}", "values": {"script": "true"}}
        status, headers, answer = demo.ask("POST", "/api/v1/jobs/", body, key=f"busy-{n}")
        if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
            assert int(headers["retry-after"]) > 0
            return None
        assert status == HTTPStatus.CREATED, answer
        return str(json.loads(answer)["id"])

    watching = threading.Thread(target=look)
    watching.start()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        accepted = [found for found in pool.map(submit, range(SUBMISSIONS)) if found]
    over.set()
    watching.join()
    ended = time.monotonic()
    seen = len(tail.lines)
    wait_until(lambda: len(tail.lines) > seen + 3, "the tail goes on behind it")
    demo.cancel(job)
    tail.close()
    during = [began, *(moment for moment in tail.came if began <= moment <= ended), ended]
    assert max(later - earlier for earlier, later in itertools.pairwise(during)) < LATE_SECONDS
    ticks = [(n, text) for n, text in tail.lines if text.startswith("tick")]
    assert ticks == [(n, f"tick {n}") for n in range(1, len(ticks) + 1)]
    assert tail.end["code"] == 1000
    assert {status for status, _ in healths} == {HTTPStatus.OK}
    assert max(seconds for _, seconds in healths) < LATE_SECONDS
    assert resident_mib(demo.process.pid) - before < GROWTH_MIB
    assert len(accepted) >= 1
    assert sorted(names(demo, "busy")) == sorted(accepted), "each accepted job exists exactly once, and no other"


def names(demo: Demo, wanted: str) -> list[str]:
    """The ids of all jobs whose name begins so."""
    found, path = [], "jobs/?limit=100"
    while path:
        page = demo.api(path)
        found += [str(job["id"]) for job in page["results"] if job["name"].startswith(wanted)]
        path = (page["next"] or "").rpartition("/api/v1/")[2]
    return found
