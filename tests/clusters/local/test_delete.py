"""Cancelling: whatever a job does, it ends and nothing of it stays."""

import time

from tests.clusters.local.machine import Machine, eventually, is_alive, make_spec, ref

STUBBORN = "trap '' TERM; echo $$; while :; do sleep 0.1; done"


def test_a_job_that_never_was_is_gone_already(machine: Machine) -> None:
    assert machine.backend.delete(ref("nobody")) is True


def test_a_queued_job_goes_without_ever_having_run(machine: Machine) -> None:
    machine.submit("runs", "sleep 30", queue="gpu", gpus=4)
    machine.wait_running("runs")
    machine.submit("queued", "true", queue="gpu", gpus=1)
    eventually(lambda: machine.reason("queued"), "a reason for waiting")
    assert machine.backend.delete(ref("queued")) is False
    facts = machine.wait_gone("queued")
    assert facts.pods == ()
    assert machine.backend.delete(ref("queued")) is True
    latest = machine.latest("runs")
    assert latest is not None
    assert latest.pods[0].phase == "Running"


def test_a_running_job_hears_sigterm_and_may_tidy_up(machine: Machine) -> None:
    machine.submit("tidy", "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.1; done")
    machine.wait_said("tidy", "ready")
    [pod] = machine.wait_running("tidy").pods
    machine.backend.delete(ref("tidy"))
    facts = machine.wait_gone("tidy", 4)
    assert facts.pods[0].gone
    assert facts.pods[0].containers[0].exit_code == 3
    assert facts.pods[0].deletion_requested_at is not None
    assert b"bye\n" in machine.raw_log(pod), "the last words can still be read"


def test_a_process_that_ignores_sigterm_is_killed_with_all_its_children(machine: Machine) -> None:
    children = "sh -c \"trap '' TERM; echo $$; sleep 300\" & setsid sh -c \"trap '' TERM; sleep 300\" & "
    machine.submit("stubborn", children + STUBBORN)
    eventually(lambda: machine.log("stubborn", follow=False).count("\n") == 2, "both processes speaking")
    pids = [int(line) for line in machine.log("stubborn", follow=False).split()]
    begin = time.monotonic()
    machine.backend.delete(ref("stubborn"))
    facts = machine.wait_gone("stubborn", 15)
    assert 4.5 < time.monotonic() - begin < 12
    assert (facts.pods[0].containers[0].exit_code, facts.pods[0].containers[0].signal) == (137, 9)
    assert not [pid for pid in pids if is_alive(pid)]
    marked = f"BEAMTIME_POD_UID={facts.pods[0].uid}".encode()
    assert not _with_environment(marked), "a child that left the process group ends too"


def test_a_process_that_shed_its_group_and_its_environment_ends_too(machine: Machine) -> None:
    machine.submit("daemon", "env -i setsid sh -c 'echo $$; sleep 300' & sleep 300")
    eventually(lambda: machine.log("daemon", follow=False).count("\n") == 1, "the daemon speaking")
    pid = int(machine.log("daemon", follow=False))
    machine.backend.delete(ref("daemon"))
    machine.wait_gone("daemon", 15)
    assert not is_alive(pid)


def test_daemons_that_end_before_their_job_do_not_pile_up(machine: Machine) -> None:
    machine.submit("many", "for i in 1 2 3 4 5; do (sleep 0 &); done; sleep 1; ps -o stat= --ppid $PPID; echo end")
    eventually(lambda: "end" in machine.log("many", follow=False), "the end of the job")
    assert "Z" not in machine.log("many", follow=False)


def _with_environment(mark: bytes) -> list[str]:
    from pathlib import Path

    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_a_job_that_is_deleted_in_the_moment_it_starts_leaves_nothing(machine: Machine) -> None:
    for number in range(10):
        name = f"n{number}"
        machine.submit(name, "echo $$; sleep 300")
        time.sleep(number * 0.01)
        machine.backend.delete(ref(name))
    for number in range(10):
        facts = machine.wait_gone(f"n{number}")
        for pod in facts.pods:
            assert not _with_environment(f"BEAMTIME_POD_UID={pod.uid}".encode())
    assert not [path for path in (machine.root / "jobs").iterdir() if not path.name.startswith(".")]
    assert not list((machine.root / "deleting").iterdir())


def test_an_array_goes_as_a_whole(machine: Machine) -> None:
    machine.submit("array", "echo $$; sleep 300", runs=4, parallelism=2)
    machine.wait("array", lambda facts: sum(pod.phase == "Running" for pod in facts.pods) == 2, "two runs")
    machine.backend.delete(ref("array"))
    facts = machine.wait_gone("array", 4)
    assert len(facts.pods) == 2
    assert all(pod.gone for pod in facts.pods)


def test_a_finished_job_goes_with_its_files(machine: Machine) -> None:
    machine.submit("done", "echo hello > kept")
    machine.wait_over("done")
    assert list(machine.root.glob("pods/*/work/kept"))
    machine.backend.delete(ref("done"))
    machine.wait_gone("done")
    assert not list(machine.root.glob("pods/*/work"))
    assert not list((machine.root / "jobs").iterdir())


def test_a_deletion_meant_for_an_earlier_object_spares_the_one_of_today(machine: Machine) -> None:
    created = machine.backend.create(make_spec("today", "sleep 30"), {})
    machine.wait_running("today")
    stale = ref("today").__class__(cluster="default", namespace="bt-vision", name="today", uid="of-yesterday")
    assert machine.backend.delete(stale) is True
    assert (
        machine.backend.delete(stale.__class__(cluster="default", namespace="bt-vision", name="today", uid=created.uid))
        is False
    )
    machine.wait_gone("today")


def test_quota_and_devices_are_free_again_only_once_the_process_has_ended(machine: Machine) -> None:
    machine.submit("stubborn", STUBBORN, queue="gpu", gpus=4)
    pid = machine.pid_said("stubborn")
    machine.submit("next", "true", queue="gpu", gpus=4)
    eventually(lambda: machine.reason("next"), "a reason for waiting")
    machine.backend.delete(ref("stubborn"))
    machine.wait("next", lambda facts: facts.pods, "its pod", 15)
    assert not is_alive(pid)
