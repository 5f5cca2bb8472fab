"""The command as a researcher has it: a process of its own, without Django and without any installed package."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from portal.jobs.models import Job, State
from portal.logs.models import Stream
from portal.teams import services as teams
from portal.teams.models import Team, User
from tests import factories
from tests.cli.wire import BreakingLine

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def job(transactional_db: None, team: Team, member: User, site: factories.Site) -> Job:
    return factories.make_job(team, member, site.cpu, state=State.RUNNING)


@pytest.fixture
def stream(job: Job) -> Stream:
    return factories.make_stream(job)


@pytest.fixture
def line(live_server: LiveServer) -> Iterator[BreakingLine]:
    with closing(BreakingLine(live_server.thread.port)) as line:
        yield line


@pytest.fixture
def token(member: User) -> str:
    return teams.issue_token(user=member, name="terminal", scope="read", lifetime=timedelta(days=1))[1]


@pytest.fixture
def beamtime(tmp_path: Path, line: BreakingLine, token: str) -> Iterator[Command]:
    """`beamtime("logs", "last")` starts it, signed in as the member, whose home is empty."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **changes: str) -> "subprocess.Popen[str]":
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(ROOT),
            "PYTHONUTF8": "1",
            "BEAMTIME_ADDRESS": line.address,
            "BEAMTIME_TOKEN": token,
        }
        process = subprocess.Popen(
            # -S: no site-packages, so that nothing but the standard library can be imported.
            [sys.executable, "-S", "-m", "portal.cli", *arguments],
            env={name: value for name, value in (environment | changes).items() if value},
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
