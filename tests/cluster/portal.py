"""The portal under test as a researcher has it in hand, with kubectl beside it as the witness."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .client import Client
from .running import PATIENCE, Running
from .testbed.cluster import KubectlError

OVER = frozenset({"succeeded", "failed", "cancelled", "rejected", "lost"})

# Runs until `Portal.release` lets it go, and leaves at once when it is told to end.
HOLD = """trap 'echo told to end; exit 143' TERM
echo begun
until [ -e /tmp/go ]; do sleep 0.1; done
echo ended
"""


@dataclass(frozen=True)
class Place:
    """Where a job's only attempt is in the cluster."""

    namespace: str
    name: str


class Portal(Running):
    """A running site and its two people: `member` of `team`, `outsider` of `other_team`."""

    member: Client
    outsider: Client

    def begin(self) -> None:
        """Make the site as an operator does, and start its processes."""
        self.manage("migrate", "--verbosity=0")
        self.manage("site_setup")
        self.manage(
            "shell", "-c", "from tests.cluster.site import make; make()", TEAM=self.team, OTHER_TEAM=self.other_team
        )
        self.member, self.outsider = (
            Client(self.address, self.manage("token", person).strip()) for person in ("member", "outsider")
        )
        self.start_all()

    # -- a researcher's deeds

    def body(self, script: str = HOLD, *, template: str = "script", **values: Any) -> dict[str, Any]:
        """What `POST jobs/` takes, small by default. `queue` and `name` are the job's, the rest are its values."""
        job: dict[str, Any] = {key: values.pop(key) for key in ("queue", "name") if key in values}
        own = {"script": script} if template == "script" else {}
        return {
            "team": self.team,
            "template": template,
            "values": {**own, "cores": 0.1, "memory": "64 MiB", **values},
            **job,
        }

    def submit(self, script: str = HOLD, **values: Any) -> str:
        """A job's id. `gpus=n` asks for GPUs of flavor gpu-a; see `body` for the rest."""
        gpus = values.pop("gpus", 0)
        if gpus:
            values["gpu"] = {"flavor": "gpu-a", "count": gpus}
        return str(self.member.post("jobs/", self.body(script, **values))["id"])

    def job(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self.member.get(f"jobs/{job}/")
        return found

    def cancel(self, job: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.member.post(f"jobs/{job}/cancel/")
        return answer

    def usage(self, job: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.member.get(f"usage/?job={job}")["results"]
        return found

    def wait(
        self, what: str, job: str, holds: Callable[[dict[str, Any]], object], *, seconds: float = PATIENCE
    ) -> dict[str, Any]:
        """The job as soon as `holds` is true of it; fails with its whole story after `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.job(job)
            if holds(found):
                return found
            late = time.monotonic() > deadline
            assert not late, f"after {seconds:.0f} s still waiting for {what}: {self._story(found)}"
            self.pause_between_looks()

    def wait_state(self, job: str, *states: str, seconds: float = PATIENCE) -> dict[str, Any]:
        """The job once it is in one of these states; an end that is not among them fails at once."""
        found = self.wait(
            f"the state {' or '.join(states)}",
            job,
            lambda found: found["state"] in states or found["state"] in OVER,
            seconds=seconds,
        )
        assert found["state"] in states, self._story(found)
        return found

    def wait_log(self, job: str, *, streams: int = 1, seconds: float = PATIENCE) -> list[dict[str, Any]]:
        """The job's streams, by index, once all of them are complete."""

        def complete(found: dict[str, Any]) -> bool:
            return len(found["streams"]) == streams and all(each["complete"] for each in found["streams"])

        found = self.wait(f"{streams} complete logs", job, complete, seconds=seconds)
        return sorted(found["streams"], key=lambda each: each["index"])

    def wait_text(self, job: str, text: bytes, *, seconds: float = PATIENCE) -> str:
        """The id of the job's first stream, once this text is in it."""

        def said(found: dict[str, Any]) -> bool:
            return bool(found["streams"]) and text in self.member.download(found["streams"][0]["id"])

        return str(self.wait(f"{text!r} in the log", job, said, seconds=seconds)["streams"][0]["id"])

    def _story(self, found: dict[str, Any]) -> str:
        attempts = [
            {key: each[key] for key in ("state", "cluster_reason", "cluster_message", "last_error", "tries", "pods")}
            for each in found["attempts"]
        ]
        logs = "\n".join(f"--- {name}\n{self.tail(name)}" for name in ("worker", "watch", "watch-2", "web"))
        return f"job {found['id']} is {found['state']} ({found['reason_code']}: {found['reason']}) {attempts}\n{logs}"

    # -- the witness

    def place(self, job: str) -> Place:
        """Where the job is, by the rule of its name."""
        return Place(f"bt-{self.team}", f"bt-{job.replace('-', '')}-1")

    def kube_job(self, job: str) -> dict[str, Any] | None:
        """The batch/v1 Job that kubectl shows, or None."""
        place = self.place(job)
        try:
            found: dict[str, Any] = self.cluster.kubectl_json("get", "job", place.name, "-n", place.namespace)
        except KubectlError as error:
            if "NotFound" not in error.stderr:
                raise
            return None
        return found

    def kube_jobs_of(self, job: str) -> list[dict[str, Any]]:
        """Every Job in the cluster that says it is of this job, whatever its name."""
        found: list[dict[str, Any]] = self.cluster.kubectl_json("get", "jobs", "-A", "-l", f"beamtime/job={job}")[
            "items"
        ]
        return found

    def kube_pods(self, job: str) -> list[dict[str, Any]]:
        """The job's pods that kubectl shows, by index."""
        place = self.place(job)
        pods: list[dict[str, Any]] = self.cluster.kubectl_json(
            "get", "pods", "-n", place.namespace, "-l", f"batch.kubernetes.io/job-name={place.name}"
        )["items"]
        return sorted(pods, key=lambda pod: pod["metadata"].get("annotations", {}).get(INDEX, ""))

    def kube_workload(self, job: str) -> dict[str, Any]:
        """Kueue's Workload of the job."""
        place = self.place(job)
        for each in self.cluster.kubectl_json("get", "workloads", "-n", place.namespace)["items"]:
            if any(owner["name"] == place.name for owner in each["metadata"].get("ownerReferences", [])):
                found: dict[str, Any] = each
                return found
        raise AssertionError(f"Kueue has no Workload for {place.name}")

    def kube_log(self, pod: dict[str, Any]) -> bytes:
        """`kubectl logs`, byte for byte."""
        about = pod["metadata"]
        return self.cluster.kubectl_bytes("logs", "-n", about["namespace"], about["name"])

    def release(self, job: str) -> None:
        """Let a `HOLD` go on to its end."""
        for pod in self.kube_pods(job):
            if pod["status"]["phase"] == "Running":
                about = pod["metadata"]
                self.cluster.kubectl("exec", "-n", about["namespace"], about["name"], "--", "touch", "/tmp/go")

    # -- afterwards

    def clear(self) -> None:
        """Every process runs again, and no job of anybody is left active."""
        self.heal()
        active = "submitted,queued,starting,running,cancelling"
        for client in (self.member, self.outsider):
            for job in client.get(f"jobs/?state={active}&limit=200")["results"]:
                client.post(f"jobs/{job['id']}/cancel/") if job["state"] != "cancelling" else None
        deadline = time.monotonic() + PATIENCE
        while left := self.member.get(f"jobs/?state={active}")["results"]:
            assert time.monotonic() < deadline, f"still active: {[self._story(self.job(each['id'])) for each in left]}"
            self.pause_between_looks()


INDEX = "batch.kubernetes.io/job-completion-index"


def moment(text: str) -> datetime:
    """A time as Kubernetes or the API writes it."""
    return datetime.fromisoformat(text)


def condition(thing: dict[str, Any], kind: str) -> dict[str, Any]:
    """A condition of an object that kubectl shows; empty if it has none of this type."""
    found = thing.get("status", {}).get("conditions", [])
    return next((each for each in found if each["type"] == kind), {})


def terminated(pod: dict[str, Any]) -> dict[str, Any]:
    """How a pod's only container ended."""
    ended: dict[str, Any] = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return ended
