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

from tests.config.server import ROOT, SUBMIT, Server
from tests.config.terminal import eventually
from tests.support.servers import RedisServer


def takes_tasks(broker: str) -> bool:
    try:
        with Celery(broker=broker) as client:
            return bool(client.control.ping(timeout=0.5))
    except redis.ConnectionError:
        # A connection that is older than the broker.
        return False


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
