"""The way to the logs cut for ten minutes, while everything else of the cluster can be reached."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import logsite
from tests.bench.context import Bench
from tests.bench.kube import KubeSite
from tests.bench.logcut import kubectl
from tests.bench.processes import until
from tests.bench.table import Row, ms
from tests.cluster.client import Client
from tests.cluster.relay import Relay

# How late the portal may be with a job's end while the logs are cut, in seconds.
LATE = 5.0
# Twenty lines a second until it is told to end; then it says how many there were.
SPEAK = """trap 'exit 143' TERM
i=0
until [ -e /tmp/go ]; do
  seq $((i + 1)) $((i + 10))
  i=$((i + 10))
  sleep 0.5
done
echo told $i
"""


class Watched:
    """What the portal says of a job's state, every half second."""

    def __init__(self, client: Client, job: str) -> None:
        self.states: list[tuple[float, str]] = []
        self._client, self._job = client, job
        self._over = threading.Event()

    @contextlib.contextmanager
    def looked_at(self) -> Iterator[None]:
        thread = threading.Thread(target=self._look)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def since(self, state: str) -> float:
        """When it was first seen in this state; infinity if never."""
        return next((at for at, seen in self.states if seen == state), float("inf"))

    def _look(self) -> None:
        while not self._over.wait(0.5):
            with contextlib.suppress(OSError):
                self.states.append((time.time(), str(self._client.get(f"jobs/{self._job}/")["state"])))


@dataclass
class Story:
    """A job that goes on through the outage, and one that ends in it."""

    lasting: str
    ending: str
    pods: dict[str, str] = field(default_factory=dict)
    # The states that the one was seen in meanwhile; how late the portal was with the other's end; and whether a log
    # was called complete that nobody could have read.
    states: set[str] = field(default_factory=set)
    late: float = 0.0
    hasty: bool = False


def measure(bench: Bench) -> list[Row]:
    """One row."""
    site = bench.kube()
    seconds = bench.count(600, 20)
    folder = bench.fresh("logoutage")
    folder.mkdir()
    with Relay(site.kubeconfig("watch"), folder).open() as relay:
        with logsite.watch(site, BEAMTIME_CLUSTER_KUBECONFIG=str(relay.kubeconfig)):
            lasting, ending = (logsite.submit(site, SPEAK, cores=0.2) for _ in range(2))
            story = Story(lasting, ending)
            for job in (story.lasting, story.ending):
                (story.pods[job],) = logsite.until_pods(site, job, 1, "Running")
                logsite.until_stored(site, job, "its first lines", lambda found: found and found[0].lines >= 50)
            plain = folder / "kubectl.log"
            _through(bench, site, relay, story, plain, seconds)
            for job in (story.lasting, story.ending):
                logsite.until_stored(site, job, "a complete log", lambda found: found[0].complete)
        refused = relay.refused
    unaffected = story.states == {"running"} and story.late < LATE and not story.hasty
    whole = {job: _is_whole(site, job) for job in story.pods}
    complete = all(good for good, _lines in whole.values())
    lines, of = sum(lines for _good, lines in whole.values()), whole[story.lasting][1]
    shown = len(plain.read_bytes().splitlines())
    return [
        Row(
            f"the way to the logs cut for {seconds} s, of a job that goes on and of one that ends meanwhile",
            "job's state unaffected, log complete afterwards",
            f"states {'unaffected' if unaffected else f'**affected**: {sorted(story.states)}'}, the end seen after "
            f"{ms(story.late)}; logs {'complete' if complete else '**not complete**'}, {lines:,} lines "
            f"({refused} reads refused meanwhile)",
            unaffected and complete,
            f"`kubectl logs -f` through the same line: ended at the cut, {shown:,} of {of:,} lines shown",
        )
    ]


def _through(bench: Bench, site: KubeSite, relay: Relay, story: Story, plain: Path, seconds: float) -> None:
    """The outage, from the cut to the end of the job that outlives it."""
    lasting, ending = (Watched(site.client(), job) for job in (story.lasting, story.ending))
    words = ("logs", "-f", "-n", site.namespace, story.pods[story.lasting])
    with (
        lasting.looked_at(),
        ending.looked_at(),
        kubectl(site, *words, into=plain, kubeconfig=relay.kubeconfig),
    ):
        until("kubectl's first lines", lambda: plain.stat().st_size, seconds=30)
        relay.cut_logs()
        began = time.time()
        bench.say(f"the logs are cut for {seconds} s")
        logsite.pause(seconds / 4)
        _tell(site, story.pods[story.ending])
        logsite.until_pods(site, story.ending, 1, "Succeeded")
        ended = time.time()
        logsite.pause(max(0.0, began + seconds - time.time()))
        with site.database() as database:
            story.hasty = any(logsite.stored(database, job)[0].complete for job in story.pods)
        story.states = {state for at, state in lasting.states if at >= began}
        relay.mend_logs()
        _tell(site, story.pods[story.lasting])
        until("the end of the job", lambda: lasting.since("succeeded") < float("inf"), seconds=60, look=0.5)
    story.late = max(0.0, ending.since("succeeded") - ended)


def _tell(site: KubeSite, pod: str) -> None:
    site.cluster.kubectl("exec", "-n", site.namespace, pod, "--", "touch", "/tmp/go")


def _is_whole(site: KubeSite, job: str) -> tuple[bool, int]:
    """(whether the log is what the pod wrote, without a gap; how many lines that is)."""
    (stream,) = logsite.told(site, job)
    text = site.client().download(stream["id"])
    count = len(text.splitlines()) - 1
    expected = "".join(f"{number}\n" for number in range(1, count + 1)) + f"told {count}\n"
    return text == expected.encode() and not stream["gaps"], count + 1
