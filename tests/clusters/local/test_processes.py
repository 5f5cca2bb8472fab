"""Telling processes apart, with /proc and, for other systems, with ps."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from portal.clusters.local.runner import processes
from tests.clusters.local.machine import eventually


@pytest.fixture(params=["proc", "ps"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(processes, "_PROC", request.param == "proc")
    return str(request.param)


@pytest.fixture
def family() -> Iterator["subprocess.Popen[bytes]"]:
    """A process group of two, which carries the mark of pod `p`."""
    command = "import os, time; os.fork(); kept = bytearray(30 << 20); print(1, flush=True); time.sleep(60)"
    environment = {**os.environ, processes.MARK: "p"}
    process = subprocess.Popen(
        [sys.executable, "-c", command], start_new_session=True, stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.readline()
    yield process
    processes.end_all(process.pid, "p")
    process.wait()
    process.stdout.close()


def test_a_process_is_told_by_its_start_and_a_dead_one_by_nothing(way: str, family: "subprocess.Popen[bytes]") -> None:
    mark = processes.started(family.pid)
    assert mark
    assert processes.started(family.pid) == mark
    family.kill()
    eventually(lambda: processes.started(family.pid) == "", "its end, before anybody has reaped it")


def test_a_group_is_found_with_the_memory_it_holds(way: str, family: "subprocess.Popen[bytes]") -> None:
    assert len(processes.members(family.pid, "p")) == 2
    assert processes.memory_of(family.pid) > 60 << 20
    assert processes.fair_memory_of(family.pid) > 60 << 20


def test_a_signal_reaches_only_the_process_that_was_meant(way: str, family: "subprocess.Popen[bytes]") -> None:
    assert processes.send(family.pid, "another start", signal.SIGKILL) is False
    assert processes.started(family.pid)
    assert processes.send(family.pid, processes.started(family.pid), signal.SIGKILL) is True
    eventually(lambda: not processes.started(family.pid), "its end")


def test_ending_all_leaves_nobody(way: str, family: "subprocess.Popen[bytes]") -> None:
    processes.end_all(family.pid, "p")
    eventually(lambda: processes.members(family.pid, "p") == [], "the end of the group")


def test_what_left_its_group_is_found_by_its_mark(family: "subprocess.Popen[bytes]") -> None:
    assert len(processes.members(0, "p")) == 2
    assert processes.members(0, "another pod") == []
