"""Reading a log: every byte once, in order, with its time."""

import asyncio
import contextlib
import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from portal.clusters.local.runner.crilog import LogWriter, stamp
from portal.clusters.specs import ContainerRef, LogGone
from tests.clusters.local.machine import LONG, Machine, eventually, ref

LINE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (.*)", re.DOTALL)


def test_a_thousand_lines_of_both_outputs_come_once_and_in_order(machine: Machine) -> None:
    script = "for n in $(seq 1000); do if [ $((n % 2)) = 0 ]; then echo $n; else echo $n >&2; fi; done"
    machine.submit("count", script)
    machine.wait_over("count")
    assert machine.log("count").split() == [str(number) for number in range(1, 1001)]


def test_case_01_a_hundred_thousand_lines_within_a_moment_come_once_and_in_order(machine: Machine) -> None:
    machine.submit("count", "seq 100000")
    [pod] = machine.wait_over("count", 60).pods
    lines = machine.raw_log(pod).splitlines()
    assert [int(line.split(b" ")[1]) for line in lines] == list(range(1, 100_001))
    stamps = [line[:30] for line in lines]
    assert stamps == sorted(stamps)
    assert all(LINE.fullmatch(line) for line in lines)


def test_a_follower_gets_each_line_when_it_is_printed_and_the_end_when_it_ends(machine: Machine) -> None:
    machine.submit("slow", "for n in 1 2 3; do echo $n; sleep 0.4; done; printf end")
    [pod] = machine.wait_running("slow").pods
    place = ContainerRef(cluster="default", namespace="bt-vision", pod=pod.name, pod_uid=pod.uid, container="main")
    arrivals: list[tuple[float, bytes]] = []

    async def follow() -> None:
        async with contextlib.aclosing(machine.backend.read_log(place, since=None, follow=True)) as chunks:
            async for chunk in chunks:
                arrivals.append((time.time(), chunk))

    asyncio.run_coroutine_threadsafe(follow(), machine._loop).result(LONG)
    text = b"".join(chunk for _, chunk in arrivals)
    assert [line.split(b" ")[1] for line in text.split(b"\n")] == [b"1", b"2", b"3", b"end"]
    assert len(arrivals) >= 3
    for at, chunk in arrivals:
        said = datetime.fromisoformat(chunk[:26].decode() + "+00:00").timestamp()
        assert at - said < 3.0


def test_what_a_job_prints_is_kept_byte_for_byte(machine: Machine) -> None:
    said = bytes(byte for byte in range(256) if byte != 10) + b"\n\n\n \n\tend"
    program = f"import sys; sys.stdout.buffer.write(bytes.fromhex('{said.hex()}'))"
    machine.submit("bytes", command=("python3", "-c", program))
    [pod] = machine.wait_over("bytes").pods
    lines = machine.raw_log(pod).split(b"\n")
    assert b"\n".join(line.split(b" ", 1)[1] for line in lines) == said


@pytest.mark.parametrize("length", [16_383, 16_384, 16_385, 100_000])
def test_a_long_line_comes_as_one_line(machine: Machine, length: int) -> None:
    machine.submit("long", command=("python3", "-c", f"print('x' * {length}); print('after')"))
    machine.wait_over("long")
    assert machine.log("long") == "x" * length + "\nafter\n"


def test_case_09_a_progress_bar_is_readable_before_its_line_ends_and_is_one_line_after(machine: Machine) -> None:
    bar = "import sys, time\nfor n in range(5):\n print(f'\\r{n * 20} %', end='', flush=True); time.sleep(0.3)\nprint()"
    machine.submit("bar", command=("python3", "-c", bar))
    machine.wait_running("bar")
    eventually(lambda: "\r20 %" in machine.log("bar", follow=False), "the bar, half way")
    seen = machine.log("bar", follow=False)
    assert "\n" not in seen
    machine.wait_over("bar")
    assert machine.log("bar") == "\r0 %\r20 %\r40 %\r60 %\r80 %\n"


def test_reading_again_from_a_moment_repeats_its_whole_second_and_no_earlier_one(machine: Machine) -> None:
    machine.submit("spread", "for n in 1 2 3 4 5 6; do echo $n; sleep 0.4; done")
    [pod] = machine.wait_over("spread").pods
    lines = machine.raw_log(pod).splitlines()
    since = datetime.fromisoformat(lines[3][:26].decode() + "+00:00")
    whole = since.replace(microsecond=0)
    expected = [line for line in lines if datetime.fromisoformat(line[:26].decode() + "+00:00") >= whole]
    assert machine.raw_log(pod, since=since).splitlines() == expected
    assert machine.raw_log(pod, since=since.astimezone(UTC) + timedelta(hours=1)) == b""


def test_an_open_line_belongs_to_the_moment_at_which_it_began(machine: Machine) -> None:
    machine.submit("open", "echo first; sleep 1.1; printf a; sleep 1.2; echo b")
    [pod] = machine.wait_over("open").pods
    first, second = machine.raw_log(pod).splitlines()
    began = datetime.fromisoformat(second[:26].decode() + "+00:00")
    assert machine.raw_log(pod, since=began).splitlines() == [second]
    assert machine.raw_log(pod, since=began + timedelta(seconds=1)) == b""
    assert first.endswith(b" first")


def test_the_log_of_an_unknown_pod_is_gone_and_that_of_one_without_a_start_not_there_yet(machine: Machine) -> None:
    def read(uid: str, container: str = "main") -> None:
        place = ContainerRef(cluster="default", namespace="bt-vision", pod="x", pod_uid=uid, container=container)

        async def run() -> None:
            async for _ in machine.backend.read_log(place, since=None, follow=False):
                pass

        asyncio.run_coroutine_threadsafe(run(), machine._loop).result(LONG)

    machine.submit("there", "sleep 30")
    [pod] = machine.wait_running("there").pods
    for uid, container in (("no-such-pod", "main"), ("../../etc", "main"), (pod.uid, "sidecar")):
        with pytest.raises(LogGone) as gone:
            read(uid, container)
        assert not gone.value.passing
    (machine.root / "pods" / "just-made").mkdir()
    with pytest.raises(LogGone) as early:
        read("just-made")
    assert early.value.passing


def test_a_follower_of_a_deleted_job_still_gets_its_last_line(machine: Machine) -> None:
    machine.submit("last", "trap 'echo last words; exit' TERM; echo ready; while :; do sleep 0.05; done")
    machine.wait_said("last", "ready")
    [pod] = machine.wait_running("last").pods
    machine.backend.delete(ref("last"))
    assert machine.raw_log(pod).splitlines()[-1].endswith(b"last words")


def test_a_full_disk_loses_lines_but_says_how_much_and_never_half_a_line(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    import os

    writer = LogWriter(str(tmp_path / "log"))
    writer.feed(b"before\n")
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) > 40:
            return real(descriptor, data[:40])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    writer.feed(b"lost " * 20 + b"\n")
    monkeypatch.setattr(os, "write", real)
    writer.feed(b"after\n")
    writer.close()
    texts = [line.split(" ", 3)[3] for line in (tmp_path / "log").read_text().splitlines()]
    assert texts[0] == "before"
    assert "bytes of this log were lost" in texts[1]
    assert texts[2:] == ["after"]


def test_stamps_are_rfc_3339_with_nanoseconds() -> None:
    assert stamp(1_795_000_000_000_000_007) == b"2026-11-18T11:06:40.000000007Z"
