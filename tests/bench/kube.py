"""The portal's four processes on a real Kubernetes with Kueue, as `tests/cluster` runs them, for who measures."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests.bench.context import Bench
from tests.bench.processes import until
from tests.bench.sites import PASSWORD, PERSON, run
from tests.cluster.client import Client
from tests.cluster.running import Running
from tests.cluster.testbed import bed as beds
from tests.cluster.testbed import build, host, queues
from tests.cluster.testbed.cluster import Cluster, KubectlError, external_kubeconfig
from tests.cluster.testbed.configs import Options
from tests.cluster.testbed.paths import Layout
from tests.support.servers import PostgresServer

PROCESSES = ("web", "worker", "beat", "watch")
PATIENCE = 120.0


class KubeSite(Running):
    """The site of the cluster tests with a database that keeps what it says, and a person who can sign in."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        super().__init__(cluster, folder)
        self.postgres.close()
        self.postgres = PostgresServer(durable=True)
        self.token = ""
        self.namespace = f"bt-{self.team}"

    def prepare(self) -> None:
        """Rows and processes; `close` also ends what is half done."""
        self.manage("migrate", "--verbosity=0")
        self.manage("collectstatic", "--noinput", "--verbosity=0")
        self.manage("site_setup")
        people = {"TEAM": self.team, "OTHER_TEAM": self.other_team}
        self.manage("shell", "-c", "from tests.cluster.site import make; make()", **people)
        self.inside("password", PASSWORD)
        self.token = self.manage("token", PERSON).strip().splitlines()[-1]
        self.start_all()

    def client(self) -> Client:
        """A program with the person's token."""
        return Client(self.address, self.token)

    def inside(self, verb: str, *arguments: object) -> Any:
        """The answer of a function of `tests.bench.inside`, run in a process of the portal's own."""
        words = ["-m", "tests.bench.inside", verb, *map(str, arguments)]
        return json.loads(run(words, self.environment("worker")).splitlines()[-1])

    def database(self) -> psycopg.Connection:
        """A connection beside the portal's."""
        return psycopg.connect(self.postgres.url, autocommit=True)

    def asked(self, query: str) -> int:
        """The one number that a query answers."""
        return int(self.psql(query))

    def body(self, script: str) -> dict[str, Any]:
        """What `POST jobs/` takes for a small job in queue `cpu`."""
        values = {"script": script, "cores": 0.1, "memory": "64 MiB"}
        return {"team": self.team, "template": "script", "queue": "cpu", "values": values}

    # -- the cluster around it

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """The team's LocalQueue lets nothing in: Jobs are made and wait, and no kubelet has work on this machine."""
        self._provision()
        self._stop_queue("Hold")
        try:
            yield
            self._clear()
        finally:
            self._stop_queue("None")

    def _provision(self) -> None:
        """Have namespace and LocalQueue made by the portal, as a team's first job does."""
        if self.asked("SELECT count(*) FROM quotas_localqueue WHERE provisioned_at IS NOT NULL") == 0:
            job = self.client().post("jobs/", self.body("true"))["id"]
            over = f"SELECT count(*) FROM jobs_job WHERE id = '{job}' AND state = 'succeeded'"  # noqa: S608 - our own id
            until("the first job to succeed", lambda: self.asked(over), seconds=PATIENCE, look=0.2)

    def _stop_queue(self, policy: str) -> None:
        patch = json.dumps({"spec": {"stopPolicy": policy}})
        self.cluster.kubectl("patch", "localqueue", "cpu", "-n", self.namespace, "--type=merge", "-p", patch)

    def until_settled(self) -> None:
        """Wait until no job is on its way to the cluster any more."""
        due = "SELECT count(*) FROM jobs_attempt WHERE due_at IS NOT NULL"
        until("every job to be in the cluster", lambda: not self.asked(due), seconds=PATIENCE, look=0.2)

    def _clear(self) -> None:
        """Remove the Jobs that were held, so that they cost the next measure nothing: rows first, then objects."""
        self.until_settled()
        for table in ("jobs_attempt", "jobs_job"):
            self.psql(f"UPDATE {table} SET state = 'cancelled', ended_at = now() WHERE ended_at IS NULL")  # noqa: S608
        until("the Jobs to be gone", self._has_no_jobs, seconds=600, look=1.0)

    def _has_no_jobs(self) -> bool:
        """Asks for their deletion, if there are any."""
        if not self.cluster.kubectl("get", "jobs", "-n", self.namespace, "-o", "name").strip():
            return True
        # In one request: kubectl alone would ask for each, five a second. The server gives up after a minute, which is
        # not enough for a thousand; what it has deleted by then is gone.
        every = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        with contextlib.suppress(KubectlError):
            self.cluster.kubectl("delete", "--raw", f"{every}?propagationPolicy=Background", seconds=600)
        return False


@contextlib.contextmanager
def site(bench: Bench) -> Iterator[KubeSite]:
    """On the cluster of KUBECONFIG or on the testbed, which is started if it is not up, and left as it was found."""
    with _cluster(bench) as cluster:
        folder = bench.fresh("kube")
        folder.mkdir()
        bench.say("starting the portal on the cluster")
        made = KubeSite(cluster, folder)
        try:
            made.prepare()
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def _cluster(bench: Bench) -> Iterator[Cluster]:
    external = external_kubeconfig()
    if external is not None:
        found = Cluster.of_kubeconfig(external)
        queues.apply(found)
        yield found
        return
    layout = Layout.default()
    with beds.exclusive(bench.say, wait=True):
        host.prepare(bench.say)
        running = beds.attach(layout, build.ensure(bench.say))
        bed = running or beds.up(layout, Options.from_environment(), bench.say)
        try:
            own = Cluster.of_bed(bed)
            queues.apply(own)
            yield own
        finally:
            if running is None:
                beds.down(layout, bench.say)
