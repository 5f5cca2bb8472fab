"""`manage.py demo` as a person at a terminal meets it: real processes, from the first start to the last."""

import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.config.terminal import PASSWORD, Demo, copied, eventually


@pytest.fixture
def new_demo(tmp_path: Path) -> Iterator[Demo]:
    """In an empty folder."""
    yield from started(tmp_path / "var")


@pytest.fixture
def demo(tmp_path: Path, seeded: Path) -> Iterator[Demo]:
    """Where a demo has been set up before."""
    yield from started(copied(seeded, tmp_path / "var"))


def started(folder: Path) -> Iterator[Demo]:
    made = Demo(folder)
    made.start()
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.end()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_a_newcomer_runs_a_job_ends_the_demo_and_finds_everything_again(new_demo: Demo) -> None:
    demo = new_demo
    printed = eventually(lambda: "Ctrl-C" in demo.printed() and demo.printed(), "the welcome")
    for word in (f"http://127.0.0.1:{demo.port}", "member", "lead", "outsider", "auditor", "admin", PASSWORD):
        assert word in printed
    demo.sign_in()
    first = demo.submit("echo hello")
    demo.wait(first, "succeeded")
    eventually(lambda: demo.log(first) == "hello\n", "the whole log")
    running = demo.submit("trap '' TERM; echo $$; while :; do sleep 0.1; done")
    pid = int(demo.said(running)[0])
    status = Path(f"/proc/{demo.process.pid}/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0])
    assert resident < 200_000, f"{resident} kB are resident"

    begin = time.monotonic()
    assert demo.end() == 0
    assert time.monotonic() - begin < 15
    assert not is_alive(pid), "Ctrl-C ends every process that the demo started"

    begin = time.monotonic()
    demo.start()
    assert time.monotonic() - begin < 30
    assert demo.job(first)["state"] == "succeeded"
    assert demo.log(first) == "hello\n"
    over = demo.wait(running, "failed", "lost")
    assert "Beamtime was stopped" in over["attempts"][0]["cluster_message"]


def test_a_second_start_says_that_it_runs_already_and_harms_nothing(demo: Demo) -> None:
    again = demo.manage("demo", "--port", str(demo.port))
    assert again.returncode != 0
    assert f"at http://127.0.0.1:{demo.port}" in again.stderr
    assert "Traceback" not in again.stderr
    reset = demo.manage("demo_reset")
    assert reset.returncode != 0
    assert (demo.folder / "beamtime.sqlite3").exists()
    assert demo.process.poll() is None


def test_a_job_survives_the_demos_sudden_death_and_is_found_with_its_whole_log(demo: Demo) -> None:
    demo.sign_in()
    job = demo.submit("echo $$; while [ ! -e stop ]; do sleep 0.05; done; echo survived; exit 0")
    pid = int(demo.said(job)[0])
    demo.end(signal.SIGKILL)
    assert is_alive(pid)
    demo.start()
    assert demo.job(job)["state"] == "running"
    [work] = demo.folder.glob("local/*/pods/*/work")
    (work / "stop").touch()
    demo.wait(job, "succeeded")
    eventually(lambda: demo.log(job) == f"{pid}\nsurvived\n", "the whole log, each line once")


def test_a_reset_forgets_everything_that_the_demo_made_and_nothing_else(demo: Demo) -> None:
    demo.sign_in()
    job = demo.submit("echo $$; sleep 300")
    pid = int(demo.said(job)[0])
    (demo.folder / "mine.txt").write_text("of the person at the terminal")
    demo.end(signal.SIGKILL)
    reset = demo.manage("demo_reset")
    assert reset.returncode == 0, reset.stderr
    assert not is_alive(pid)
    assert [path.name for path in demo.folder.iterdir()] == ["mine.txt"]


def test_passwords_are_kept_so_that_guessing_is_dear(seeded: Path) -> None:
    with closing(sqlite3.connect(seeded / "beamtime.sqlite3")) as database:
        kept = [word for (word,) in database.execute("SELECT password FROM teams_user")]
    assert [word.split("$")[0] for word in kept] == ["argon2"] * 5


def test_a_port_that_is_none_is_refused_in_one_sentence(tmp_path: Path) -> None:
    refused = Demo(tmp_path / "var").manage("demo", "--port=http")
    assert refused.returncode != 0
    assert "is no port" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1", "", "80.5"])
def test_what_is_no_port(port: str) -> None:
    with pytest.raises(CommandError, match="is no port"):
        call_command("demo", f"--port={port}")
