"""A follower that is stopped while the files of twenty logs are rotated away: is every missing line declared?"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from tests.bench import logsite
from tests.bench.context import Bench
from tests.bench.kube import KubeSite
from tests.bench.logcut import kubectl, without_times
from tests.bench.processes import until
from tests.bench.table import Row
from tests.cluster.judged import Judged, judge
from tests.cluster.testbed import images
from tests.cluster.testbed.cluster import KubectlError

TARGET = 20_000
LIMITS = {"containerLogMaxSize": "256Ki", "containerLogMaxFiles": 3, "containerLogMonitorInterval": "3s"}
# Two hundred bytes a line: the buffers between the kubelet and the follower hold some eight megabytes of each log,
# which a thousand lines a second fill in forty seconds.
WORDS = "w" * 192
# Twenty times a second what is due by the clock: an even stream, in which a pause means something.
WRITER = f"""exec python3 -c '
import sys, time
begin, done = time.time(), 0
while done < LINES:
    due = min(LINES, int((time.time() - begin) * EACH))
    sys.stdout.write("".join(f"{{number}} {WORDS}\\n" for number in range(done + 1, due + 1)))
    sys.stdout.flush()
    done = due
    time.sleep(0.05)
'
"""
PLAIN = 2


def measure(bench: Bench) -> list[Row]:
    """One row."""
    site = bench.kube()
    pods, rotations = bench.count(20, 4), bench.count(18, 8)
    each = TARGET // pods if not bench.quick else 2_000
    # For some time before the stop, the stop, and some time after it.
    lines = each * bench.count(130, 60)
    script = WRITER.replace("LINES", str(lines)).replace("EACH", str(each))
    folder = bench.fresh("logstop")
    folder.mkdir()
    told = {"BEAMTIME_LEASE": "240", "BEAMTIME_LOG_FILE_BYTES": str(256 * 1024)}
    with logsite.kubelet(site, **LIMITS), logsite.watch(site, **told):
        job = logsite.submit(site, script, runs=pods, cores=1.6 / pods, image=images.PYTHON)
        names = logsite.until_pods(site, job, pods, "Running")
        with contextlib.ExitStack() as stack:
            plain = [folder / f"{name}.log" for name in names[:PLAIN]]
            for name, file in zip(names, plain, strict=False):
                stack.enter_context(_follow(site, name, file))
            logsite.until_stored(
                site,
                job,
                "the first lines of every pod",
                lambda found: len(found) == pods and all(each.lines for each in found),
            )
            logsite.pause(bench.count(8, 4))
            bench.say(f"the follower of {pods} pods is stopped over {rotations} rotations")
            site.pause("watch")
            began = time.monotonic()
        try:
            _until_rotated(site, names[0], rotations)
        finally:
            stopped = time.monotonic() - began
            site.resume("watch")
        with contextlib.ExitStack() as stack:
            for name, file in zip(names, plain, strict=False):
                stack.enter_context(_follow(site, name, file))
            logsite.until_stored(
                site,
                job,
                "complete logs",
                lambda found: len(found) == pods and all(each.complete for each in found),
            )
        verdicts, gaps, rate = _verdicts(site, job, lines)
    missed = [judge(without_times(file.read_bytes()), [], lines=lines, words=WORDS) for file in plain]
    return [_row(verdicts, gaps, rate, missed, lines=lines, stopped=stopped, rotations=rotations)]


def _row(
    verdicts: list[Judged], gaps: int, rate: float, missed: list[Judged], *, lines: int, stopped: float, rotations: int
) -> Row:
    missing, silent = sum(one.missing for one in verdicts), sum(one.silent for one in verdicts)
    needless = sum(one.needless for one in verdicts)
    doubled = sum(one.doubled for one in verdicts)
    faults = "; ".join(fault for one in verdicts for fault in one.faults[:1])[:300]
    return Row(
        f"follower stopped for {stopped:.0f} s over {rotations} rotations, {len(verdicts)} pods, "
        f"{rate:,.0f} lines/s in all",
        f"{TARGET:,} lines/s; every missing line inside a declared gap, none doubled; undeclared loss 0",
        f"{missing:,} of {len(verdicts) * lines:,} lines missing, {gaps} declared gaps, {needless} of them where "
        f"nothing is; undeclared {silent:,}, "
        f"doubled {doubled:,}{f' ({faults})' if faults else ''}",
        (silent, doubled) == (0, 0) and rate >= 0.9 * TARGET,
        f"`kubectl logs -f --timestamps`, ended and started again, of {len(missed)} of the pods: "
        f"{sum(one.silent for one in missed):,} lines missing without a word, "
        f"{sum(one.doubled for one in missed):,} doubled",
    )


def _follow(site: KubeSite, name: str, file: Path) -> contextlib.AbstractContextManager[object]:
    return kubectl(site, "logs", "-f", "--timestamps", "-n", site.namespace, name, into=file)


def _until_rotated(site: KubeSite, name: str, times: int) -> None:
    """Wait for so many rotations of a pod's log."""
    seen = {_first(site, name)}

    def changed() -> bool:
        seen.add(_first(site, name))
        return len(seen - {b""}) > times

    until(f"{times} rotations", changed, seconds=30 + times * 10, look=0.3)


def _first(site: KubeSite, name: str) -> bytes:
    """Where its present file begins."""
    words = ("logs", "-n", site.namespace, name, "--timestamps", "--limit-bytes=30")
    try:
        head = site.cluster.kubectl_bytes(*words)
    except KubectlError:
        return b""
    # In the moment between two files the kubelet says what it misses.
    return head if head.startswith(b"2") else b""


def _verdicts(site: KubeSite, job: str, lines: int) -> tuple[list[Judged], int, float]:
    """(what is missing of each log, gaps declared in all, lines a second that all pods together wrote)."""
    client, verdicts, gaps = site.client(), [], 0
    for stream in logsite.told(site, job):
        verdicts.append(judge(client.download(stream["id"]), stream["gaps"], lines=lines, words=WORDS))
        gaps += len(stream["gaps"])
    rate = 0.0
    for pod in logsite.pods_of(site, job):
        life = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        seconds = logsite.moment(life["finishedAt"]) - logsite.moment(life["startedAt"])
        rate += lines / max(seconds, 1.0)
    return verdicts, gaps, rate
