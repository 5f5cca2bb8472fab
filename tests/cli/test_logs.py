"""`beamtime logs`: a job's log in the terminal, each line once, whatever the network does."""

import signal
import subprocess
import time
from datetime import timedelta
from pathlib import Path

from portal.core.clock import now
from portal.jobs.models import Attempt, Job, State
from portal.logs import services
from portal.logs.models import Cause, Stream
from portal.logs.specs import Record
from tests import factories
from tests.cli.conftest import Command
from tests.cli.wire import BreakingLine
from tests.logs.stored import damage, sealed_lines, training_lines

SECOND = 1_000_000_000


def write(stream: Stream, first: int, *texts: str, at: int | None = None) -> None:
    moment = at if at is not None else int(now().timestamp()) * SECOND
    records = [Record(moment, f"{text}\n".encode()) for text in texts]
    assert services.append(stream_id=stream.pk, first_line=first, records=records)


def end(job: Job, stream: Stream, state: State = State.SUCCEEDED, *, exit_code: int = 0, reason: str = "") -> None:
    Attempt.objects.filter(job=job).update(state=state, exit_code=exit_code, ended_at=now())
    Job.objects.filter(pk=job.pk).update(state=state, reason=reason, ended_at=now())
    services.complete(stream_id=stream.pk)


def outcome(process: "subprocess.Popen[str]") -> tuple[int, list[str], str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out.splitlines(), err


def until_said(process: "subprocess.Popen[str]", count: int) -> list[str]:
    """So many lines of its output, as they come."""
    assert process.stdout is not None
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


def test_the_newest_job_s_log_as_far_as_it_is(beamtime: Command, stream: Stream) -> None:
    write(stream, 1, "one", "two")
    assert outcome(beamtime("logs", "last")) == (0, ["one", "two"], "")


def test_a_followed_log_ends_with_its_job_and_exits_as_it_did(beamtime: Command, job: Job, stream: Stream) -> None:
    write(stream, 1, "one")
    process = beamtime("logs", str(job.pk), "--follow")
    assert until_said(process, 1) == ["one"]
    write(stream, 2, "two")
    assert until_said(process, 1) == ["two"]
    write(stream, 3, "three")
    end(job, stream, State.FAILED, exit_code=3, reason="It exited with 3.")
    assert outcome(process) == (3, ["three"], "beamtime: failed: It exited with 3.\n")


def test_case_03_a_network_that_breaks_again_and_again_brings_each_line_once(
    beamtime: Command, job: Job, stream: Stream, line: BreakingLine
) -> None:
    texts = [f"line {number} {'x' * 60}" for number in range(1, 20_001)]
    for first in range(0, len(texts), 1000):
        write(stream, first + 1, *texts[first : first + 1000])
    # Longer than a page of lines, shorter than two: a line that breaks now and then.
    line.after = 900_000
    process = beamtime("logs", str(job.pk), "-f")
    got = until_said(process, len(texts))
    line.after = 0
    write(stream, len(texts) + 1, "while it was away")
    deadline = time.monotonic() + 30
    while line.cuts < 4:
        assert time.monotonic() < deadline, "the command did not ask again"
        time.sleep(0.05)
    line.after = None
    end(job, stream)
    code, rest, said = outcome(process)
    assert (code, [*got, *rest]) == (0, [*texts, "while it was away"])
    assert "trying again, nothing is lost" in said
    assert "the portal is back" in said


def test_the_last_lines_and_those_since_a_time(beamtime: Command, stream: Stream) -> None:
    moment = int(now().timestamp())
    for number in range(1, 101):
        write(stream, number, f"line {number}", at=(moment - 1000 + number * 10) * SECOND)
    assert outcome(beamtime("logs", "last", "--tail", "2"))[1] == ["line 99", "line 100"]
    lines = outcome(beamtime("logs", "last", "--since", "95s"))[1]
    # Some seconds may have passed since the lines were written.
    assert lines[-1] == "line 100"
    assert 6 <= len(lines) <= 10
    assert outcome(beamtime("logs", "last", "--since", (now() + timedelta(hours=1)).isoformat()))[1] == []


def test_only_lines_that_match_with_their_numbers(beamtime: Command, stream: Stream) -> None:
    write(stream, 1, "loss 0.5", "epoch 2", "\x1b[31mloss\x1b[0m 0.4")
    assert outcome(beamtime("logs", "last", "--grep", r"^loss 0\.[45]$", "--numbers"))[1] == [
        "       1 loss 0.5",
        "       3 \x1b[31mloss\x1b[0m 0.4",
    ]


def test_the_runs_of_an_array_are_told_apart_and_chosen(beamtime: Command, job: Job, stream: Stream) -> None:
    other = factories.make_stream(job, pod_index=1)
    write(stream, 1, "of the first")
    write(other, 1, "of the second")
    assert outcome(beamtime("logs", "last"))[1] == ["0 | of the first", "1 | of the second"]
    assert outcome(beamtime("logs", "last", "--run", "1"))[1] == ["of the second"]


def test_what_is_missing_is_said_beside_the_log(beamtime: Command, job: Job, stream: Stream) -> None:
    write(stream, 1, "one")
    services.note_gap(stream_id=stream.pk, before_line=2, cause=Cause.DELETED)
    services.complete(stream_id=stream.pk)
    code, lines, said = outcome(beamtime("logs", str(job.pk)))
    assert (code, lines) == (0, ["one"])
    assert "The last lines may be missing" in said


def test_what_is_missing_is_said_of_a_log_that_goes_on_and_of_each_run(
    beamtime: Command, job: Job, stream: Stream
) -> None:
    other = factories.make_stream(job, pod_index=1)
    for each in (stream, other):
        write(each, 1, "one")
        services.note_gap(stream_id=each.pk, before_line=2, cause=Cause.SKIPPED, lines=3)
    said = outcome(beamtime("logs", str(job.pk)))[2]
    assert [line.partition("3 lines")[0] for line in said.splitlines()] == ["beamtime: run 0: ", "beamtime: run 1: "]


def test_a_network_that_breaks_at_the_end_hides_no_gap(
    beamtime: Command, job: Job, stream: Stream, line: BreakingLine
) -> None:
    write(stream, 1, "one")
    process = beamtime("logs", str(job.pk), "-f")
    assert until_said(process, 1) == ["one"]
    line.refused = f"GET /api/v1/streams/{stream.pk}/ ".encode()
    services.note_gap(stream_id=stream.pk, before_line=2, cause=Cause.DELETED)
    end(job, stream)
    deadline = time.monotonic() + 30
    while line.cuts < 2:
        assert time.monotonic() < deadline, "the command did not ask what is missing"
        time.sleep(0.05)
    line.refused = None
    assert "The last lines may be missing" in outcome(process)[2]


def test_the_rest_of_an_attempt_is_read_before_the_next_one(beamtime: Command, job: Job, stream: Stream) -> None:
    """The command was asleep while the first attempt died and the second began."""
    write(stream, 1, "one")
    process = beamtime("logs", str(job.pk), "-f")
    assert until_said(process, 1) == ["one"]
    process.send_signal(signal.SIGSTOP)
    write(stream, 2, "RuntimeError: of the first attempt")
    services.complete(stream_id=stream.pk)
    second = factories.make_stream(job, attempt_number=2)
    write(second, 1, "again")
    end(job, second)
    process.send_signal(signal.SIGCONT)
    _code, lines, said = outcome(process)
    assert lines == ["RuntimeError: of the first attempt", "again"]
    assert "attempt 2 begins" in said


def test_head_may_close_the_pipe(beamtime: Command, stream: Stream) -> None:
    write(stream, 1, *[f"line {number} {'x' * 100}" for number in range(5000)])
    process = beamtime("logs", "last")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("line 0")
    process.stdout.close()
    assert process.wait(30) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_each_trouble_names_its_remedy(beamtime: Command, outsider: object, job: Job, line: BreakingLine) -> None:
    assert "Begin with: beamtime login" in outcome(beamtime("logs", "last", BEAMTIME_TOKEN=""))[2]
    assert "Make a new one on your tokens page" in outcome(beamtime("logs", "last", BEAMTIME_TOKEN="wrong"))[2]
    assert "is no job" in outcome(beamtime("logs", "nonsense"))[2]
    assert "no such job" in outcome(beamtime("logs", "00000000-0000-0000-0000-000000000000"))[2]
    assert "is no time" in outcome(beamtime("logs", "last", "--since", "yesterday"))[2]
    assert "is no regular expression" in outcome(beamtime("logs", "last", "--grep", "("))[2]
    assert "is no web address" in outcome(beamtime("logs", "last", BEAMTIME_ADDRESS="portal"))[2]
    line.after = 0
    code, _, said = outcome(beamtime("logs", "last"))
    assert code == 1
    assert "cannot be reached" in said


def test_a_wrong_token_is_not_remembered(beamtime: Command, tmp_path: Path, line: BreakingLine) -> None:
    process = beamtime("login", line.address)
    _, said = process.communicate("wrong\n", timeout=30)
    assert process.returncode == 1
    assert "The token is not valid" in said
    assert not (tmp_path / ".config").exists()


def test_login_keeps_address_and_token_for_their_owner_only(
    beamtime: Command, stream: Stream, tmp_path: Path, line: BreakingLine, token: str
) -> None:
    write(stream, 1, "one")
    process = beamtime("login", line.address, BEAMTIME_ADDRESS="", BEAMTIME_TOKEN="")
    process.communicate(f"{token}\n", timeout=30)
    assert process.returncode == 0
    file = tmp_path / ".config" / "beamtime" / "config.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    assert outcome(beamtime("logs", "last", BEAMTIME_ADDRESS="", BEAMTIME_TOKEN="")) == (0, ["one"], "")


def test_a_damaged_log_is_named_and_not_asked_for_again(beamtime: Command, job: Job, stream: Stream) -> None:
    sealed_lines(stream, training_lines(1000))
    end(job, stream)
    damage(stream)
    code, lines, said = outcome(beamtime("logs", str(job.pk), "-f"))
    assert (code, lines) == (1, [])
    assert said == (
        "beamtime: This log's stored copy is damaged; an administrator can see which with `manage.py check_logs`.\n"
    )
