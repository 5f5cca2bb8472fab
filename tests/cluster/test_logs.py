"""Logs: every line once and in order, however fast they come and whoever dies meanwhile."""

from __future__ import annotations

import hashlib
import itertools

from .portal import Portal, moment

COUNT_UNTIL_TOLD = """trap 'exit 143' TERM
i=0
until [ -e /tmp/go ]; do
  for each in 1 2 3 4 5 6 7 8 9 10; do i=$((i + 1)); echo "line $i"; done
  sleep 0.1
done
echo "told $i"
"""


def test_case_01_a_hundred_thousand_lines_as_fast_as_it_can_each_once_in_order(portal: Portal) -> None:
    job = portal.submit("seq 1 100000")

    portal.wait_state(job, "succeeded")
    (stream,) = portal.wait_log(job)

    expected = "".join(f"{number}\n" for number in range(1, 100_001)).encode()
    assert portal.kube_log(portal.kube_pods(job)[0]) == expected
    downloaded = portal.member.download(stream["id"])
    assert hashlib.sha256(downloaded).hexdigest() == hashlib.sha256(expected).hexdigest()
    lines = portal.member.lines(stream["id"])
    assert [(line["n"], line["text"]) for line in lines] == [(n, str(n)) for n in range(1, 100_001)]
    assert (stream["lines"], stream["bytes"], stream["trouble"]) == (100_000, len(expected), "")
    # The point of the case: hundreds of lines share a millisecond, so that no moment could serve as a cursor.
    assert len({line["t"][: len("2026-01-01T00:00:00.000")] for line in lines}) < 1000
    # Pages of an odd size, read from anywhere, say the same.
    page = portal.member.get(f"streams/{stream['id']}/lines/?from=31337&limit=777")
    assert [line["text"] for line in page["lines"]] == [str(n) for n in range(31_337, 32_114)]


def test_an_array_is_one_job_with_a_pod_and_a_log_for_each_run(portal: Portal) -> None:
    body = portal.body(template="array", runs=4, epochs=2, seconds_per_epoch=0, memory="128 MiB")
    job = portal.member.post("jobs/", body)["id"]

    found = portal.wait_state(job, "succeeded")
    streams = portal.wait_log(job, streams=4)

    kube = portal.kube_job(job)
    assert kube is not None
    assert (kube["spec"]["completionMode"], kube["spec"]["completions"]) == ("Indexed", 4)
    pods = portal.kube_pods(job)
    assert [stream["index"] for stream in streams] == [0, 1, 2, 3]
    logs = [portal.member.download(stream["id"]) for stream in streams]
    assert logs == [portal.kube_log(pod) for pod in pods]
    assert len(set(logs)) == 4
    assert [stream["pod_uid"] for stream in streams] == [pod["metadata"]["uid"] for pod in pods]
    assert len(found["attempts"][0]["pods"]) == 4
    assert len({row["pod_uid"] for row in portal.usage(job)}) == 4


def test_every_line_comes_once_when_the_watch_is_killed_and_a_standby_takes_over(portal: Portal) -> None:
    portal.start("watch-2")
    job = portal.submit(COUNT_UNTIL_TOLD, gpus=1)
    stream = portal.wait_text(job, b"line 100\n")

    for leader in ("watch", "watch-2"):
        portal.kill(leader)
        stored = portal.member.get(f"streams/{stream}/")["lines"]
        portal.wait(
            "the standby to read on",
            job,
            lambda found, stored=stored: found["streams"][0]["lines"] > stored + 50,  # type: ignore[misc]
            seconds=25,
        )
        portal.start(leader)

    portal.release(job)
    portal.wait_state(job, "succeeded")
    (kept,) = portal.wait_log(job)

    text = portal.member.download(stream)
    assert text == portal.kube_log(portal.kube_pods(job)[0])
    *lines, last = text.decode().splitlines()
    assert lines == [f"line {number}" for number in range(1, len(lines) + 1)]
    assert last == f"told {len(lines)}"
    assert kept["trouble"] == ""
    times = [moment(line["t"][:26]) for line in portal.member.lines(stream)]
    assert all(earlier <= later for earlier, later in itertools.pairwise(times))
