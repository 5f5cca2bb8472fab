"""Limits of time and memory."""

import pytest

from tests.clusters.local.machine import Machine, is_alive

EAT = "import time\nkept = []\nfor _ in range(100):\n kept.append(bytearray(8 << 20)); time.sleep(0.02)\ntime.sleep(60)"


def test_a_job_past_its_time_is_stopped_with_the_reason(machine: Machine) -> None:
    machine.submit("late", "echo $$; sleep 300", time_limit_seconds=1)
    pid = machine.pid_said("late")
    [pod] = machine.wait_over("late").pods
    [container] = pod.containers
    assert (pod.phase, pod.reason) == ("Failed", "DeadlineExceeded")
    assert container.exit_code == 143
    assert container.started_at is not None
    assert container.finished_at is not None
    assert 1 <= (container.finished_at - container.started_at).total_seconds() <= 3
    assert not is_alive(pid)


def test_a_job_that_ends_well_on_sigterm_has_still_failed_its_limit(machine: Machine) -> None:
    machine.submit("polite", "trap 'exit 0' TERM; while :; do sleep 0.1; done", time_limit_seconds=1)
    [pod] = machine.wait_over("polite").pods
    assert (pod.phase, pod.reason, pod.containers[0].exit_code) == ("Failed", "DeadlineExceeded", 0)


def test_a_job_that_ignores_the_end_of_its_time_is_killed(machine: Machine) -> None:
    machine.submit("stubborn", "trap '' TERM; echo $$; while :; do sleep 0.1; done", time_limit_seconds=1)
    pid = machine.pid_said("stubborn")
    [pod] = machine.wait_over("stubborn").pods
    assert (pod.reason, pod.containers[0].exit_code) == ("DeadlineExceeded", 137)
    assert not is_alive(pid)


def test_each_run_of_an_array_has_the_whole_time_limit(machine: Machine) -> None:
    machine.submit("array", "sleep 2", runs=3, parallelism=1, time_limit_seconds=5)
    facts = machine.wait_over("array")
    assert [pod.phase for pod in facts.pods] == ["Succeeded"] * 3


@pytest.mark.parametrize("where", ["itself", "a child"])
def test_a_job_past_its_memory_is_killed_with_the_reason(machine: Machine, where: str) -> None:
    command = ("python3", "-c", EAT)
    if where == "a child":
        command = ("python3", "-c", f"import os, time\nif os.fork():\n time.sleep(60)\nelse:\n exec({EAT!r})")
    machine.submit("eater", command=command, memory_mib=128)
    [pod] = machine.wait_over("eater").pods
    [container] = pod.containers
    assert (pod.phase, container.reason, container.exit_code) == ("Failed", "OOMKilled", 137)
    assert "128 MiB" in container.message


def test_memory_that_processes_share_counts_once(machine: Machine) -> None:
    share = "import os, time\nkept = bytearray(os.urandom(60 << 20))\n" + "os.fork()\n" * 2 + "time.sleep(1.5)"
    machine.submit("sharing", command=("python3", "-c", share), memory_mib=160)
    [pod] = machine.wait_over("sharing").pods
    assert pod.containers[0].reason == "Completed"
