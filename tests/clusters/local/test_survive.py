"""The portal may be killed at any moment: what runs goes on, and what ended meanwhile is found."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.clusters.local.runner import processes
from tests.clusters.local.machine import Machine, eventually, is_alive, make_spec, ref

CONTROL = """
import asyncio, sys
from pathlib import Path
from portal.clusters.local.backend import LocalBackend

async def main():
    async for facts in LocalBackend(root=Path(sys.argv[1]), cluster="default").observe():
        print(facts.name, [pod.phase for pod in facts.pods], flush=True)

asyncio.run(main())
"""


class Portal:
    """A process of its own that controls the cluster, to be killed without a warning."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", CONTROL, str(root)], stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@pytest.fixture
def later(tmp_path: Path) -> Iterator[Machine]:
    """The machine after the portal was killed; not observed before `start`."""
    made = Machine(tmp_path / "cluster")
    try:
        yield made
    finally:
        made.backend.shutdown(grace=0.2)
        if made._task is None:
            made.start()
        made.stop()


def status_file(machine: Machine, name: str) -> Path:
    def find() -> Path | None:
        for path in machine.root.glob("pods/*/pod.json"):
            if name in path.read_text() and (path.parent / "status.json").exists():
                return path.parent / "status.json"
        return None

    found: Path = eventually(find, f"{name} running")
    return found


def test_a_job_goes_on_while_the_portal_is_dead_and_is_adopted_after(later: Machine) -> None:
    portal = Portal(later.root)
    later.submit("long", "echo long $$; while [ ! -e stop ]; do sleep 0.05; done; echo done; exit 5")
    folder = status_file(later, "long $$").parent
    eventually(lambda: "long" in (folder / "log").read_text(), "its first line")
    pid = int((folder / "log").read_text().split()[-1])
    portal.kill()
    assert is_alive(pid)

    later.start()
    facts = later.wait_running("long")
    assert facts.pods[0].uid == folder.name
    (folder / "work" / "stop").touch()
    [pod] = later.wait_over("long").pods
    assert pod.containers[0].exit_code == 5
    assert later.log("long").splitlines()[-1] == "done"


def test_a_job_that_ended_while_the_portal_was_dead_is_found_with_its_own_end(later: Machine) -> None:
    portal = Portal(later.root)
    later.submit("short", "echo short; sleep 0.7; exit 4")
    status = status_file(later, "short")
    portal.kill()
    eventually(lambda: '"phase":"Failed"' in status.read_text(), "the end, noted by the runner")
    ended = status.stat().st_mtime
    time.sleep(1.2)
    later.start()
    [pod] = later.wait_over("short").pods
    assert pod.containers[0].exit_code == 4
    assert pod.containers[0].finished_at is not None
    assert abs(pod.containers[0].finished_at.timestamp() - ended) <= 1


def test_a_queued_job_starts_after_the_restart_and_only_once(later: Machine) -> None:
    portal = Portal(later.root)
    later.submit("first", "echo first; sleep 1", queue="gpu", gpus=4)
    status_file(later, "echo first")
    later.submit("second", "echo second", queue="gpu", gpus=4)
    portal.kill()
    later.start()
    later.wait_over("first")
    assert later.log("first") == "first\n"
    facts = later.wait_over("second")
    assert len(facts.pods) == 1
    assert later.log("second") == "second\n"


def test_jobs_made_while_the_portal_was_dead_start_with_it(later: Machine) -> None:
    later.submit("early", "echo early")
    later.start()
    later.wait_over("early")
    assert later.log("early") == "early\n"


def test_a_portal_that_is_killed_again_and_again_runs_each_job_exactly_once(later: Machine) -> None:
    names = [f"n{number}" for number in range(12)]
    for name in names:
        later.submit(name, f"echo {name} >> {later.root}/ran; sleep 0.2")
    for delay in (0.15, 0.3, 0.2, 0.35, 0.25):
        portal = Portal(later.root)
        time.sleep(0.3 + delay)
        portal.kill()
    later.start()
    for name in names:
        [pod] = later.wait_over(name, 60).pods
        assert pod.containers[0].exit_code == 0
    assert sorted((later.root / "ran").read_text().split()) == sorted(names)


def test_a_runner_that_is_killed_leaves_a_pod_that_says_so_and_no_process(machine: Machine) -> None:
    machine.submit("headless", "setsid sleep 300 & echo $!; echo $$; sleep 300")
    eventually(lambda: machine.log("headless", follow=False).count("\n") == 2, "both processes speaking")
    pids = [int(line) for line in machine.log("headless", follow=False).split()]
    machine.wait_running("headless")
    os.kill(machine.runner_of("headless"), signal.SIGKILL)
    [pod] = machine.wait_over("headless").pods
    [container] = pod.containers
    assert (pod.phase, pod.reason) == ("Failed", "NodeLost")
    assert "ended without a word" in pod.message
    assert container.exit_code is None, "an exit code that nobody saw is not invented"
    assert container.finished_at is not None
    eventually(lambda: not [pid for pid in pids if is_alive(pid)], "the end of what it left behind")
    assert machine.log("headless").count("\n") == 2


def test_a_runner_that_died_with_the_portal_is_closed_at_its_last_sign_of_life(later: Machine) -> None:
    portal = Portal(later.root)
    later.submit("crash", "echo crash $$; sleep 300")
    folder = status_file(later, "crash").parent
    eventually(lambda: "crash" in (folder / "log").read_text(), "its first line")
    pid = int((folder / "log").read_text().split()[-1])
    portal.kill()
    runner = next(
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and str(folder).encode() in _read(entry / "cmdline")
    )
    last_sign = (folder / "log").stat().st_mtime
    os.kill(runner, signal.SIGKILL)
    time.sleep(2.1)
    later.start()
    [pod] = later.wait_over("crash").pods
    assert pod.reason == "NodeLost"
    assert pod.containers[0].finished_at is not None
    assert pod.containers[0].finished_at.timestamp() <= last_sign + 1
    eventually(lambda: not is_alive(pid), "the end of the command")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def started_after(mark: str) -> "subprocess.Popen[bytes]":
    """A process that the kernel's clock, which ticks a hundred times a second, tells from an earlier one."""

    def later() -> "subprocess.Popen[bytes] | None":
        found = subprocess.Popen(["sleep", "300"], start_new_session=True)
        if processes.started(found.pid) != mark:
            return found
        found.kill()
        found.wait()
        return None

    started: subprocess.Popen[bytes] = eventually(later, "the clock's next tick")
    return started


def test_a_process_id_that_means_somebody_else_by_now_is_left_alone(later: Machine) -> None:
    """After a reboot the numbers in the files belong to others."""
    portal = Portal(later.root)
    later.submit("old", "echo old; sleep 300")
    status = status_file(later, "echo old")
    leader, mark = eventually(lambda: json.loads(status.read_text())["leader"], "the command's process")
    portal.kill()
    runner = next(
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and str(status.parent).encode() in _read(entry / "cmdline")
    )
    os.kill(runner, signal.SIGKILL)
    stranger = started_after(mark)
    try:
        status.write_text(status.read_text().replace(f'"leader":[{leader},', f'"leader":[{stranger.pid},'))
        later.start()
        later.wait_over("old")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_half_made_and_half_removed_jobs_of_a_crash_are_not_seen_and_are_tidied_up(later: Machine) -> None:
    jobs = later.root / "jobs"
    for name in (".new-crashed", ".gone-crashed"):
        (jobs / name).mkdir()
        (jobs / name / "spec.json").write_text("{")
    os.utime(jobs / ".new-crashed", (0, 0))
    (jobs / "bt-vision.broken").mkdir()
    (jobs / "bt-vision.broken" / "spec.json").write_text('{"uid": "half')
    later.backend.expect({"bt-vision/broken": ("id-of-broken", 1)})
    later.start()
    later.wait_gone("broken")
    later.wait_over(later.submit("healthy").name)
    assert sorted(path.name for path in jobs.iterdir()) == ["bt-vision.broken", "bt-vision.healthy"]


def test_a_deletion_that_was_asked_for_while_the_portal_was_dead_is_done_after(later: Machine) -> None:
    portal = Portal(later.root)
    later.submit("doomed", "echo doomed; sleep 300")
    status_file(later, "echo doomed")
    portal.kill()
    assert later.backend.delete(ref("doomed")) is False
    later.start()
    later.wait_gone("doomed")
    assert later.backend.delete(ref("doomed")) is True


def test_a_full_or_lost_data_folder_is_waited_for(later: Machine) -> None:
    shutil.rmtree(later.root)
    later.root.write_text("not a folder")
    later.start()
    time.sleep(0.5)
    later.root.unlink()
    again = Machine(later.root)
    again.submit("back", "echo back")
    later.wait_over("back")
    again.start()
    again.stop()


def test_the_end_of_the_portal_ends_every_process_and_says_why(machine: Machine) -> None:
    machine.submit("runs", "trap '' TERM; echo $$; while :; do sleep 0.1; done")
    machine.submit("waits", "true", cpu_millicores=4000)
    pid = machine.pid_said("runs")
    begin = time.monotonic()
    machine.backend.shutdown(grace=0.5)
    assert time.monotonic() - begin < 6
    assert not is_alive(pid)
    [pod] = machine.wait_over("runs").pods
    assert (pod.phase, pod.reason) == ("Failed", "NodeShutdown")
    waiting = machine.latest("waits")
    assert waiting is not None
    assert not waiting.pods, "nothing starts any more"


def test_the_end_of_the_portal_finds_jobs_also_when_nobody_observes_any_more(machine: Machine) -> None:
    machine.submit("runs", "echo $$; sleep 300")
    pid = machine.pid_said("runs")
    machine.wait_running("runs")
    machine.pause()
    machine.backend.shutdown(grace=0.5)
    assert not is_alive(pid)
    machine.start()
    [pod] = machine.wait_over("runs").pods
    assert pod.reason == "NodeShutdown"


def test_what_waited_at_the_end_of_the_portal_runs_at_its_next_start(machine: Machine) -> None:
    machine.submit("runs", "sleep 300", cpu_millicores=4000)
    machine.wait_running("runs")
    machine.backend.create(make_spec("waits", "echo at last"), {})
    eventually(lambda: machine.reason("waits"), "a reason for waiting")
    machine.backend.shutdown(grace=0.2)
    machine.pause()
    machine.start()
    machine.wait_over("waits")
    assert machine.log("waits") == "at last\n"
