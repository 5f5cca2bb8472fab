"""A job's log in the terminal: from any line on, by number, so that a broken network neither loses nor doubles one."""

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from portal.cli.client import Portal
from portal.cli.errors import Away, Trouble
from portal.cli.text import harmless, plain

PAGE = 5000
OVER = frozenset({"succeeded", "failed", "cancelled", "rejected", "lost"})
# Seconds between two looks: soon after news, later after none; and between two looks at the job itself.
SOON, LATE, JOB = 0.3, 2.0, 3.0
# Seconds of the pauses while the portal is away.
PAUSES = (0.5, 1, 2, 4, 8, 15)


@dataclass(frozen=True)
class Wish:
    """What the person wants to see. `runs`: of an array, by index; empty: all."""

    follow: bool = False
    since: datetime | None = None
    tail: int | None = None
    grep: re.Pattern[str] | None = None
    runs: frozenset[int] = frozenset()
    attempt: int | None = None
    numbers: bool = False
    times: bool = False


class Terminal:
    """Where the lines go. On a real terminal they are made harmless; into a pipe they go as they are."""

    def __init__(self, wish: Wish, *, several: bool) -> None:
        self._wish, self.several = wish, several
        self._harmless = sys.stdout.isatty()

    def line(self, stream: dict[str, Any], line: dict[str, Any]) -> None:
        text = line["text"]
        if self._wish.grep is not None and not self._wish.grep.search(plain(text)):
            return
        head = f"{stream['index']} | " if self.several else ""
        head += f"{line['n']:>8} " if self._wish.numbers else ""
        head += f"{line['t']} " if self._wish.times else ""
        sys.stdout.write(f"{head}{harmless(text) if self._harmless else text}\n")

    def say(self, words: str) -> None:
        """Beside the log, so that a file that takes the log holds nothing else."""
        sys.stdout.flush()
        sys.stderr.write(f"beamtime: {words}\n")
        sys.stderr.flush()


class Reader:
    """All streams of a job that are wished for, each from its own number on."""

    def __init__(self, portal: Portal, job: str, wish: Wish, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._portal, self._job_id, self._wish, self._sleep = portal, job, wish, sleep
        self._terminal = Terminal(wish, several=False)
        self._next: dict[str, int] = {}
        self._done: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        # The attempt whose streams are being read.
        self._attempt = 0
        self._away = 0

    def run(self) -> int:
        """The exit status: the job's own once it is over and was followed, else 0."""
        job = self._patiently(lambda: self._portal.get(f"jobs/{self._job_id}/"))
        looked, pause = time.monotonic(), SOON
        while True:
            streams = self._streams(job)
            self._terminal = Terminal(self._wish, several=len(streams) > 1 or job["resources"]["runs"] > 1)
            news = sum([self._patiently(lambda stream=stream: self._read(stream)) for stream in streams])  # type: ignore[misc]
            sys.stdout.flush()
            # Once more: an older attempt may be read to its end now, and the newest have its turn.
            if job["state"] in OVER and all(stream["id"] in self._done for stream in self._streams(job)):
                return self._ended(job)
            if not self._wish.follow:
                for stream in streams:
                    self._patiently(lambda stream=stream: self._say_missing(stream))  # type: ignore[misc]
                return 0
            pause = SOON if news else min(LATE, pause * 1.5)
            self._sleep(pause)
            ended = any(stream["id"] in self._done for stream in streams)
            if time.monotonic() - looked >= JOB or not streams or ended:
                job, looked = self._patiently(lambda: self._portal.get(f"jobs/{self._job_id}/")), time.monotonic()

    def _streams(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        """The newest attempt's, or the wished one's; but what was begun of an older one comes first."""
        attempts = [stream["attempt"] for stream in job["streams"]]
        attempt = self._wish.attempt or max(attempts, default=0)
        begun = [stream for stream in job["streams"] if stream["id"] in self._next and stream["id"] not in self._done]
        if older := [stream for stream in begun if stream["attempt"] < attempt]:
            return older
        if self._attempt and attempt > self._attempt:
            self._terminal.say(f"attempt {attempt} begins")
        self._attempt = attempt
        chosen = [stream for stream in job["streams"] if stream["attempt"] == attempt]
        if self._wish.runs:
            chosen = [stream for stream in chosen if stream["index"] in self._wish.runs]
        return chosen

    def _read(self, stream: dict[str, Any]) -> int:
        """How many lines are new; all of them are written out."""
        key, count = stream["id"], 0
        if key in self._done:
            return 0
        if key not in self._next:
            self._next[key] = self._first(stream)
        while True:
            page = self._portal.get(f"streams/{key}/lines/?from={self._next[key]}&limit={PAGE}")
            for line in page["lines"]:
                self._terminal.line(stream, line)
            # Only now: whatever breaks before asks for the same lines again.
            self._next[key] = page["to"]
            count += len(page["lines"])
            if page["complete"]:
                # Before it counts as done, so that a network that breaks right here hides nothing.
                self._say_missing(stream)
                self._done.add(key)
                return count
            if not page["lines"]:
                return count

    def _say_missing(self, stream: dict[str, Any]) -> None:
        """What is missing in it, once; of several streams with its run."""
        trouble = self._portal.get(f"streams/{stream['id']}/").get("trouble")
        if trouble and (stream["id"], trouble) not in self._told:
            self._told.add((stream["id"], trouble))
            self._terminal.say(f"run {stream['index']}: {trouble}" if self._terminal.several else trouble)

    def _first(self, stream: dict[str, Any]) -> int:
        """The number of the first line that is wished for."""
        # As it is now: the job was looked at a while ago.
        last = self._portal.get(f"streams/{stream['id']}/")["lines"]
        first = 1
        if self._wish.tail is not None:
            first = max(1, last - self._wish.tail + 1)
        if self._wish.since is not None:
            first = max(first, self._line_at(stream["id"], last, self._wish.since))
        return first

    def _line_at(self, key: str, last: int, moment: datetime) -> int:
        """The first line that is not older, by halving: times grow with the numbers."""
        low, high = 1, last + 1
        while low < high:
            middle = (low + high) // 2
            lines = self._portal.get(f"streams/{key}/lines/?from={middle}&limit=1")["lines"]
            if lines and _time(lines[0]["t"]) < moment:
                low = middle + 1
            else:
                high = middle
        return low

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """Ask until there is an answer, if the log is followed; say it once when the portal is away, and when back."""
        tries = 0
        while True:
            try:
                answer = ask()
            except Away as away:
                if not self._wish.follow and tries >= 2:
                    raise Trouble(f"{away}. Is the network up?") from away
                if tries == 1:
                    self._terminal.say(f"{away}; trying again, nothing is lost")
                self._sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                tries += 1
                continue
            if tries > 1:
                self._terminal.say("the portal is back")
            return answer

    def _ended(self, job: dict[str, Any]) -> int:
        if not self._wish.follow:
            return 0
        reason = f": {job['reason']}" if job["reason"] and job["state"] != "succeeded" else ""
        self._terminal.say(f"{job['state']}{reason}")
        if job["state"] == "succeeded":
            return 0
        codes = [attempt["exit_code"] for attempt in job["attempts"] if attempt["exit_code"]]
        return codes[-1] if codes and 0 < codes[-1] < 256 else 1


def _time(text: str) -> datetime:
    """RFC 3339 with nanoseconds, of which six digits count."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{fraction[:6].ljust(6, '0')}").replace(tzinfo=UTC)
