"""The broker goes away under a running worker, and what was submitted meanwhile reaches the cluster all the same."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from celery import Celery
from cryptography.fernet import Fernet

from tests.config.test_demo import eventually
from tests.support.servers import RedisServer

ROOT = Path(__file__).resolve().parents[2]
SUBMIT = """
from portal.jobs.services import submit
from portal.jobs.specs import JobRequest
from portal.teams.models import Team, User
team, user = Team.objects.get(slug="vision"), User.objects.get(username="member")
submit(JobRequest(team=team, user=user, template="script", version=None, values={"script": "true"}, name="", queue=None,
                  idempotency_key=None))
"""
STATES = "from portal.jobs.models import Job; print(*Job.objects.values_list('state', flat=True))"


class Server:
    """A site in server mode, without its web: a database of its own, jobs as processes of this machine, a broker."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAMTIME_", "DATABASE_"))}
        self.environment = kept | {
            "DJANGO_SETTINGS_MODULE": "portal.config.settings",
            "BEAMTIME_MODE": "server",
            "BEAMTIME_DATA_DIR": str(folder / "data"),
            "DATABASE_URL": f"sqlite:///{folder / 'site.sqlite3'}",
            "REDIS_URL": redis_url,
            "BEAMTIME_CLUSTER_BACKEND": "local",
            "BEAMTIME_ALLOW_LOCAL_BACKEND": "yes",
            "BEAMTIME_SECRET_KEY": "a key for this test",
            "BEAMTIME_SECRETS_KEYS": Fernet.generate_key().decode(),
            "BEAMTIME_DEMO_PASSWORD": "a password for this test",
        }

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, check=True, capture_output=True, text=True
        ).stdout

    def states(self) -> list[str]:
        return self.manage("shell", "--verbosity=0", "-c", STATES).split()


def takes_tasks(broker: str) -> bool:
    try:
        with Celery(broker=broker) as client:
            return bool(client.control.ping(timeout=0.5))
    except redis.ConnectionError:
        # A connection that is older than the broker.
        return False


@pytest.fixture
def site(tmp_path: Path, redis_that_fails: RedisServer) -> Server:
    site = Server(tmp_path, redis_that_fails.url)
    site.manage("migrate", "--verbosity=0")
    site.manage("seed_demo")
    return site


@pytest.fixture
def worker(tmp_path: Path, site: Server, redis_that_fails: RedisServer) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "celery", "-A", "portal.config", "worker", "--concurrency", "2"]
    with (tmp_path / "worker.log").open("wb") as log:
        worker = subprocess.Popen(command, cwd=ROOT, env=site.environment, stdout=log, stderr=log)
        try:
            eventually(lambda: takes_tasks(redis_that_fails.url), "the worker")
            yield worker
        finally:
            worker.terminate()
            worker.wait(30)


@pytest.mark.usefixtures("worker")
def test_a_job_submitted_while_the_broker_is_down_reaches_the_cluster(
    site: Server, redis_that_fails: RedisServer
) -> None:
    redis_that_fails.stop()
    site.manage("shell", "--verbosity=0", "-c", SUBMIT)
    eventually(lambda: "submitted" not in site.states(), "the job's way to the cluster")


def test_a_worker_outlives_a_broker_that_goes_away_in_the_middle_of_a_task(
    tmp_path: Path, worker: "subprocess.Popen[bytes]", redis_that_fails: RedisServer
) -> None:
    children = subprocess.run(["pgrep", "-P", str(worker.pid)], check=True, capture_output=True, text=True)
    hands = [int(child) for child in children.stdout.split()]
    for hand in hands:
        os.kill(hand, signal.SIGSTOP)
    try:
        with Celery(broker=redis_that_fails.url) as client:
            # One place is left free, so that the worker goes on listening to the broker.
            client.send_task("jobs.sweep")
        with redis.Redis.from_url(redis_that_fails.url) as broker:
            eventually(lambda: broker.hlen("unacked"), "the task's way to the worker")
        redis_that_fails.stop()
        said = tmp_path / "worker.log"
        eventually(lambda: b"does not answer" in said.read_bytes(), "the worker's notice of the loss")
    finally:
        for hand in hands:
            os.kill(hand, signal.SIGCONT)
    redis_that_fails.start()
    eventually(lambda: worker.poll() is not None or takes_tasks(redis_that_fails.url), "the return to the broker", 90)
    assert worker.poll() is None, said.read_text()
