"""What a job looks like from outside, from the queue to its end."""

import time
from dataclasses import replace

from portal.clusters.specs import Condition
from tests.clusters.local.machine import Machine, eventually, is_alive, make_spec, ref


def condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    return next((each for each in conditions if each.type == kind), None)


def test_a_job_goes_from_the_queue_to_its_end_as_in_a_cluster(machine: Machine) -> None:
    before = int(time.time())
    spec = machine.submit("plain", "echo hello; sleep 0.2", queue="gpu", gpus=2, cpu_millicores=1500, memory_mib=512)
    facts = machine.wait_over("plain")
    assert (facts.namespace, facts.name, facts.job_id, facts.attempt) == (spec.namespace, "plain", spec.job_id, 1)

    assert facts.job is not None
    assert facts.workload is not None
    assert condition(facts.job.conditions, "Complete") is not None
    assert (facts.job.active, facts.job.succeeded, facts.job.failed) == (0, 1, 0)
    assert not facts.job.suspended
    assert facts.workload.cluster_queue == "gpu"
    assert facts.workload.flavors == {"cpu": "h100", "memory": "h100", "nvidia.com/gpu": "h100"}
    for kind in ("QuotaReserved", "Admitted", "Finished"):
        found = condition(facts.workload.conditions, kind)
        assert found is not None
        assert found.status

    [pod] = facts.pods
    [container] = pod.containers
    assert (pod.phase, container.reason, container.exit_code, container.name) == ("Succeeded", "Completed", 0, "main")
    assert pod.node
    assert {name: float(amount) for name, amount in pod.requests.items()} == {
        "nvidia.com/gpu": 2,
        "cpu": 1.5,
        "memory": 0.5,
    }
    moments = [facts.job.created_at, facts.job.started_at, pod.scheduled_at, container.started_at]
    moments += [container.finished_at, facts.job.completed_at]
    assert all(moment is not None and moment.microsecond == 0 for moment in moments)
    assert moments == sorted(moments)  # type: ignore[type-var]
    assert before <= facts.job.created_at.timestamp() <= time.time()

    phases = [pod.phase for seen in machine.seen["plain"] for pod in seen.pods]
    assert list(dict.fromkeys(phases)) == ["Pending", "Running", "Succeeded"]


def test_a_failure_keeps_its_exit_code_and_a_signal_its_number(machine: Machine) -> None:
    machine.submit("seven", "exit 7")
    machine.submit("shot", "kill -SEGV $$")
    seven, shot = machine.wait_over("seven").pods[0], machine.wait_over("shot").pods[0]
    assert (seven.phase, seven.containers[0].reason, seven.containers[0].exit_code) == ("Failed", "Error", 7)
    assert (shot.containers[0].exit_code, shot.containers[0].signal) == (139, 11)
    job = machine.wait_over("seven").job
    assert job is not None
    failed = condition(job.conditions, "Failed")
    assert failed is not None
    assert failed.reason == "BackoffLimitExceeded"


def test_a_second_job_waits_inside_the_quota_with_its_reason_and_starts_when_the_first_ends(machine: Machine) -> None:
    machine.submit("first", "sleep 1", queue="gpu", gpus=4)
    machine.wait_running("first")
    machine.submit("second", "true", queue="gpu", gpus=2)
    said = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor h100, "
    eventually(lambda: machine.reason("second") == said + "2 more needed", "the reason for waiting")
    waiting = machine.latest("second")
    assert waiting is not None
    assert waiting.job is not None
    assert waiting.job.suspended
    assert not waiting.pods
    first, second = machine.wait_over("first").pods[0], machine.wait_over("second").pods[0]
    end, begin = first.containers[0].finished_at, second.containers[0].started_at
    assert end is not None
    assert begin is not None
    assert begin >= end


def test_jobs_start_in_the_order_in_which_they_came(machine: Machine) -> None:
    machine.submit("blocker", "sleep 0.5", queue="gpu", gpus=4)
    machine.wait_running("blocker")
    names = [f"n{number}" for number in range(4)]
    for name in names:
        machine.submit(name, "date +%s%N", queue="gpu", gpus=4)
    for name in names:
        machine.wait_over(name)
    moments = [int(machine.log(name)) for name in names]
    assert moments == sorted(moments)


def test_the_quota_holds_however_many_come_at_once(machine: Machine) -> None:
    names = [f"n{number}" for number in range(8)]
    for name in names:
        machine.submit(name, "date +%s%N; sleep 0.3; date +%s%N", queue="gpu", gpus=2)
    for name in names:
        machine.wait_over(name, 60)
    spans = [tuple(map(int, machine.log(name).split())) for name in names]
    edges = sorted([(begin, 2) for begin, _ in spans] + [(end, -2) for _, end in spans])
    held = most = 0
    for _, change in edges:
        held += change
        most = max(most, held)
    assert most == 4


def test_no_device_is_given_to_two_jobs_at_a_time(machine: Machine) -> None:
    for name in ("a", "b", "c"):
        machine.submit(name, "echo $CUDA_VISIBLE_DEVICES; sleep 30", queue="gpu", gpus=1)
    for name in ("a", "b", "c"):
        machine.wait_said(name, "\n")
    devices = [machine.log(name, follow=False).strip() for name in ("a", "b", "c")]
    assert sorted(devices) == ["0", "1", "2"]
    machine.backend.delete(ref("b"))
    machine.wait_gone("b")
    machine.submit("d", "echo $CUDA_VISIBLE_DEVICES; sleep 30", queue="gpu", gpus=2)
    machine.wait_said("d", "\n")
    assert machine.log("d", follow=False).strip() == ",".join(sorted({"0", "1", "2", "3"} - {devices[0], devices[2]}))


def test_pretended_gpus_are_called_so_and_a_job_without_gpus_sees_none(machine: Machine) -> None:
    machine.submit("gpu", 'echo "$BEAMTIME_PRETENDED_GPUS"', queue="gpu", gpus=2)
    machine.submit("cpu", 'echo "[$CUDA_VISIBLE_DEVICES] [$BEAMTIME_PRETENDED_GPUS]"')
    machine.wait_over("gpu")
    machine.wait_over("cpu")
    assert machine.log("gpu").strip() == "2 × NVIDIA H100"
    assert machine.log("cpu").strip() == "[] []"


def test_every_run_of_an_array_has_its_index_and_its_own_log(machine: Machine) -> None:
    machine.submit("array", "echo run $JOB_COMPLETION_INDEX", runs=5, parallelism=2)
    facts = machine.wait_over("array")
    assert sorted(pod.index for pod in facts.pods) == [0, 1, 2, 3, 4]
    assert [machine.log("array", index=index).strip() for index in range(5)] == [f"run {index}" for index in range(5)]
    assert facts.job is not None
    assert facts.job.succeeded == 5


def test_an_array_runs_no_more_at_once_than_it_may(machine: Machine) -> None:
    machine.submit("array", "date +%s%N; sleep 1; date +%s%N", runs=4, parallelism=2)
    machine.wait_over("array")
    spans = sorted(tuple(map(int, machine.log("array", index=index).split())) for index in range(4))
    assert spans[2][0] >= min(spans[0][1], spans[1][1])
    assert spans[1][0] < spans[0][1], "two may run at once, and do"


def test_one_failed_run_does_not_end_the_others(machine: Machine) -> None:
    machine.submit("array", 'test "$JOB_COMPLETION_INDEX" != 1', runs=3)
    facts = machine.wait_over("array")
    assert sorted((pod.index, pod.phase) for pod in facts.pods) == [(0, "Succeeded"), (1, "Failed"), (2, "Succeeded")]
    assert facts.job is not None
    assert [(each.type, each.reason) for each in facts.job.conditions] == [("Failed", "FailedIndexes")]


def test_the_quota_of_ended_runs_goes_to_others_before_the_array_ends(machine: Machine) -> None:
    script = 'test "$JOB_COMPLETION_INDEX" = 0 || sleep 30'
    machine.submit("array", script, runs=2, queue="gpu", gpus=2)
    machine.submit("next", "true", queue="gpu", gpus=2)
    machine.wait_over("next")
    latest = machine.latest("array")
    assert latest is not None
    assert latest.job is not None
    assert latest.job.active == 1


def test_a_raised_quota_lets_a_waiting_job_in_and_a_lowered_one_stops_nobody(machine: Machine) -> None:
    machine.submit("running", "sleep 30", queue="gpu", gpus=4)
    machine.wait_running("running")
    machine.submit("waiting", "true", queue="gpu", gpus=2)
    machine.narrow("gpu", gpus=2, cpu=32, memory=64)
    eventually(lambda: "4 more needed" in machine.reason("waiting"), "the shortage after the cut")
    machine.narrow("gpu", gpus=6, cpu=32, memory=64)
    machine.wait_over("waiting")
    latest = machine.latest("running")
    assert latest is not None
    assert latest.pods[0].phase == "Running"


def test_a_quota_larger_than_the_machine_makes_a_pod_wait_for_a_device(machine: Machine) -> None:
    real = tuple(replace(each, pretended=False) for each in machine.backend.read_queues().flavors)
    machine.backend.write_queues(replace(machine.backend.read_queues(), flavors=real))
    machine.submit("absent", "true", queue="gpu", gpus=1)
    facts = machine.wait("absent", lambda facts: facts.pods, "a pod")
    [scheduled] = facts.pods[0].conditions
    assert (scheduled.status, scheduled.reason) == (False, "Unschedulable")
    assert "Insufficient nvidia.com/gpu" in scheduled.message
    assert facts.pods[0].scheduled_at is None, "a pod that waits for its devices costs nothing"


def test_an_expected_job_that_does_not_exist_is_reported_missing(machine: Machine) -> None:
    machine.submit("there", "sleep 30")
    machine.backend.expect({"bt-vision/there": ("id-of-there", 1), "bt-vision/absent": ("id-of-absent", 3)})
    facts = machine.wait_gone("absent")
    assert (facts.job_id, facts.attempt, facts.job, facts.pods) == ("id-of-absent", 3, None, ())
    assert not any(each.job_gone for each in machine.seen.get("there", []))


def test_a_job_whose_files_somebody_removed_is_gone_and_its_process_ends(machine: Machine) -> None:
    import shutil

    machine.submit("robbed", "echo $$; sleep 300")
    pid = machine.pid_said("robbed")
    machine.wait_running("robbed")
    shutil.rmtree(machine.root / "jobs" / "bt-vision.robbed")
    machine.wait_gone("robbed")
    eventually(lambda: not is_alive(pid), "the end of the process")


def test_a_change_is_seen_at_once(machine: Machine) -> None:
    machine.wait_over(machine.submit("warm").name)
    delays = []
    for number in range(5):
        spec = make_spec(f"quick{number}", "date +%s%N")
        machine.backend.create(spec, {})
        machine.wait(spec.name, lambda facts: facts.job and facts.job.conditions, "its end")
        delays.append(time.time() - int(machine.log(spec.name)) / 1e9)
    # From the command's last word to facts that show the job's end; an idle machine needs a tenth of that.
    assert sorted(delays)[2] < 0.6


def test_a_second_observer_waits_until_the_first_has_gone(machine: Machine) -> None:
    other = Machine(machine.root)
    other.start()
    machine.wait_over(machine.submit("one").name)
    assert not other.seen
    machine.pause()
    other.wait_over("one")
    other.stop()
    machine.start()
