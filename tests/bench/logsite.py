"""What the measures of the log share: jobs of many pods, what is stored of them, another watch, another kubelet."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from tests.bench.kube import KubeSite
from tests.bench.logtemplate import SLUG
from tests.bench.processes import BenchError, until
from tests.cluster.testbed import images
from tests.cluster.testbed.paths import TestbedError

PATIENCE = 240.0
STREAMS = """
SELECT id::text, pod_name, next_line - 1, bytes, completed_at IS NOT NULL, coalesce(last_time_ns, 0)
FROM logs_stream WHERE job_id = %s ORDER BY pod_index, created_at
"""
TICKS = os.sysconf("SC_CLK_TCK")


class Stored(NamedTuple):
    """One stream, as its row is at a moment."""

    id: str
    pod: str
    lines: int
    bytes: int
    complete: bool
    last_ns: int


# -- jobs


def submit(site: KubeSite, script: str, *, runs: int = 1, cores: float = 1.0, image: str = images.BUSYBOX) -> str:
    """The id of a job of so many pods, each of which may use so much of a core."""
    site.manage("shell", "-c", "from tests.bench.logtemplate import make; make()")
    values = {"script": script, "runs": runs, "cores": cores, "image": image}
    body = {"team": site.team, "template": SLUG, "queue": "cpu", "values": values}
    return str(site.client().post("jobs/", body)["id"])


def pods_of(site: KubeSite, job: str) -> list[dict[str, Any]]:
    """As kubectl shows them."""
    words = ("get", "pods", "-n", site.namespace, "-l", f"beamtime/job={job}")
    found: list[dict[str, Any]] = site.cluster.kubectl_json(*words)["items"]
    return found


def until_pods(site: KubeSite, job: str, count: int, phase: str, *, seconds: float = PATIENCE) -> list[str]:
    """Their names, once so many are in this phase."""
    names: list[str] = []

    def there() -> bool:
        names[:] = [pod["metadata"]["name"] for pod in pods_of(site, job) if pod["status"].get("phase") == phase]
        return len(names) >= count

    until(f"{count} pods to be {phase}", there, seconds=seconds, look=0.5)
    return names


def remove(site: KubeSite, job: str) -> None:
    """Take its Job and pods out of the cluster, with the files of their logs."""
    name = f"bt-{job.replace('-', '')}-1"
    site.cluster.kubectl("delete", "job", name, "-n", site.namespace, "--ignore-not-found", "--wait=false")


# -- what is stored


def stored(database: psycopg.Connection, job: str) -> list[Stored]:
    return [Stored(*row) for row in database.execute(STREAMS, (job,)).fetchall()]


def until_stored(site: KubeSite, job: str, what: str, holds: Callable[[list[Stored]], object], **words: Any) -> None:
    """Wait for something to be true of a job's streams."""
    with site.database() as database:
        until(what, lambda: holds(stored(database, job)), **{"seconds": PATIENCE, "look": 0.1, **words})


def told(site: KubeSite, job: str) -> list[dict[str, Any]]:
    """The streams as the API tells them, by index."""
    found: list[dict[str, Any]] = site.client().get(f"jobs/{job}/")["streams"]
    return sorted(found, key=lambda stream: stream["index"])


# -- another watch, another kubelet


@contextlib.contextmanager
def watch(site: KubeSite, **changes: str) -> Iterator[None]:
    """A watch with these changes to its environment in place of the ordinary one."""
    _end_watch(site)
    try:
        site.start("watch", **changes)
        yield
    finally:
        _end_watch(site)
        site.start("watch")


def _end_watch(site: KubeSite) -> None:
    """In order, so that the next one need not wait for the end of its lease."""
    if site.alive("watch"):
        # Late ones are killed.
        with contextlib.suppress(TestbedError):
            site.stop("watch")


@contextlib.contextmanager
def kubelet(site: KubeSite, **changes: Any) -> Iterator[None]:
    """A kubelet with these fields of its configuration changed. Raises BenchError if the cluster is not our own."""
    if not site.cluster.own:
        raise BenchError("this measure changes how the kubelet rotates logs, which only the testbed allows")
    site.cluster.set_kubelet(**changes)
    try:
        yield
    finally:
        site.cluster.set_kubelet()


# -- time on a processor


def spent(site: KubeSite, *, watch: bool = True) -> dict[str, float]:
    """Seconds on a processor so far, by who takes part in storing a log."""
    found = {"watch": _spent(site.pid("watch"))} if watch else {}
    found["PostgreSQL"] = _with_children(site.postgres.process.pid)
    if site.cluster.own:
        for words, name in (("API server", "apiserver"), ("kubelet", "kubelet")):
            pid = site.cluster.bed.processes.pid(name)
            found[words] = 0.0 if pid is None else _spent(pid)
    return found


def between(before: dict[str, float], after: dict[str, float], *, seconds: float = 1.0) -> str:
    """ "watch 3.1, PostgreSQL 1.2": seconds on a processor, or how many processors over so many seconds."""
    return ", ".join(f"{name} {(after[name] - before.get(name, 0.0)) / seconds:.1f}" for name in after)


def _fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _spent(pid: int, *, ended_children: bool = False) -> float:
    fields = _fields(pid)
    return sum(int(each) for each in fields[11 : 15 if ended_children else 13]) / TICKS


def _with_children(pid: int) -> float:
    """Of a server that has a process for each connection."""
    total = _spent(pid, ended_children=True)
    for path in Path("/proc").glob("[0-9]*"):
        fields = _fields(int(path.name))
        if len(fields) > 1 and int(fields[1]) == pid:
            total += _spent(int(path.name))
    return total


def pause(seconds: float) -> None:
    """Let the measured thing go on for a while."""
    time.sleep(seconds)


def moment(text: str) -> float:
    """A time as Kubernetes writes it, in seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()
