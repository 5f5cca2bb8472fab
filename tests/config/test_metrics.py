"""A scrape of real processes after a job has run: the embedded one, and worker and watch of a server."""

import contextlib
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.server import ROOT, SUBMIT, Server
from tests.config.terminal import Demo, copied, eventually
from tests.support.metrics import scraped
from tests.support.servers import free_port

TOKEN = "what Prometheus knows"


def scrape(address: str, token: str = "") -> dict[str, float]:
    """Empty while nobody answers. Raises `HTTPError` for a refusal."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - our own address
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return scraped(answer.read().decode())
    except urllib.error.HTTPError:
        raise
    except OSError:
        return {}


@pytest.fixture
def demo(tmp_path: Path, seeded: Path) -> Iterator[Demo]:
    demo = Demo(copied(seeded, tmp_path / "data"))
    demo.environment["BEAMTIME_METRICS_TOKEN"] = TOKEN
    demo.start()
    yield demo
    demo.end()


def test_the_embedded_process_tells_of_everything_in_one_answer(demo: Demo) -> None:
    demo.sign_in()
    job = demo.submit("echo one; echo two; exit 3")
    demo.wait(job, "failed")
    address = f"http://127.0.0.1:{demo.port}/metrics"
    found = eventually(
        lambda: (seen := scrape(address, TOKEN))["beamtime_log_streams_open"] == 0 and seen, "the end of the log"
    )
    assert found["beamtime_jobs_submitted_total"] == 1
    assert found["beamtime_job_dispatch_seconds_count"] == 1
    assert found['beamtime_jobs_ended_total{state="failed"}'] == 1
    assert found['beamtime_log_stored_lines_total{source="follower"}'] == 2
    assert found['beamtime_log_stored_bytes_total{source="follower"}'] == len("one\ntwo\n")
    assert found['beamtime_log_lag_seconds_count{source="follower"}'] >= 1
    assert found["beamtime_watch_leading"] == 1
    assert found["beamtime_watch_lease_seconds"] > 0
    assert found["beamtime_dispatch_due"] == 0
    assert not [name for name in found if job in name], "no label names a job"
    for token in ("", "wrong", demo.token):
        with pytest.raises(urllib.error.HTTPError) as refused:
            scrape(address, token)
        assert refused.value.code == 401
        refused.value.close()


@contextlib.contextmanager
def running(site: Server, log: Path, *command: str, **more: str) -> Iterator[str]:
    """A process of the site; where its metrics are."""
    port = free_port()
    environment = site.environment | {"BEAMTIME_METRICS_PORT": str(port)} | more
    with log.open("wb") as said:
        process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, stdout=said, stderr=said)
        try:
            address = f"http://127.0.0.1:{port}/metrics"
            eventually(lambda: scrape(address), f"{command} on its port")
            yield address
        finally:
            process.terminate()
            process.wait(60)


def test_the_workers_pool_and_the_watcher_tell_of_themselves(site: Server, tmp_path: Path) -> None:
    pool = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "pool")}
    worker = ("-m", "celery", "-A", "portal.config", "worker", "--concurrency", "2")
    with (
        running(site, tmp_path / "worker.log", *worker, **pool) as of_worker,
        running(site, tmp_path / "watch.log", "manage.py", "watch") as of_watch,
    ):
        site.manage("shell", "--verbosity=0", "-c", SUBMIT)

        def made() -> float:
            return scrape(of_worker).get("beamtime_job_dispatch_seconds_count", 0)

        assert eventually(made, "the object of the job") == 1
        eventually(lambda: scrape(of_watch)["beamtime_watch_leading"] == 1, "a leader")
        eventually(lambda: scrape(of_watch)['beamtime_jobs_ended_total{state="succeeded"}'] == 1, "the job's end")
        assert "process_cpu_seconds_total" in scrape(of_worker)
        # Facts of the database are for web alone to tell.
        assert not {"beamtime_database_up", "beamtime_dispatch_due"} & {*scrape(of_worker), *scrape(of_watch)}
    assert list((tmp_path / "pool").glob("*.db")), "counted in the pool's own processes"


def test_a_port_that_is_taken_keeps_nobody_from_work(site: Server, tmp_path: Path) -> None:
    with running(site, tmp_path / "first.log", "manage.py", "watch") as first:
        port = first.split(":")[2].split("/")[0]
        said = tmp_path / "second.log"
        command = [sys.executable, "manage.py", "watch"]
        with said.open("wb") as log:
            second = subprocess.Popen(
                command, cwd=ROOT, env=site.environment | {"BEAMTIME_METRICS_PORT": port}, stdout=log, stderr=log
            )
            try:
                eventually(lambda: b"cannot be used" in said.read_bytes(), "the second one's word about it")
                assert second.poll() is None
            finally:
                second.terminate()
                second.wait(60)
