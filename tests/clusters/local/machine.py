"""What the tests of the local backend work with."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from portal.clusters.local.backend import LocalBackend
from portal.clusters.specs import (
    AttemptFacts,
    ContainerRef,
    FlavorQuota,
    FlavorSpec,
    JobSpec,
    ObjectRef,
    PodFacts,
    QueueSnapshot,
    QueueSpec,
    TeamSpace,
    WorkSpec,
)

NAMESPACE = "bt-vision"
LONG = 20.0


def quotas(flavor: str, **amounts: int) -> tuple[FlavorQuota, ...]:
    """Quotas of one flavor; `gpus` stands for nvidia.com/gpu."""
    names = {"gpus": "nvidia.com/gpu"}
    return tuple(FlavorQuota(flavor, names.get(name, name), Decimal(amount)) for name, amount in amounts.items())


SNAPSHOT = QueueSnapshot(
    flavors=(FlavorSpec("h100", gpu_model="NVIDIA H100", pretended=True), FlavorSpec("cpu")),
    queues=(
        QueueSpec("cpu", quotas("cpu", cpu=4, memory=16)),
        QueueSpec("gpu", quotas("h100", gpus=4, cpu=32, memory=64)),
    ),
)


def make_spec(name: str, script: str = "true", *, queue: str = "cpu", **work: Any) -> JobSpec:
    """A job that runs a shell script; `work` overrides fields of its WorkSpec."""
    values: dict[str, Any] = {"image": "busybox", "command": ("/bin/sh", "-c", script), "memory_mib": 256, **work}
    return JobSpec(
        cluster="default",
        namespace=NAMESPACE,
        name=name,
        queue=queue,
        cluster_queue=queue,
        job_id=f"id-of-{name}",
        attempt=1,
        team="vision",
        submitted_by="member",
        display_name=f"The job {name}",
        work=WorkSpec(**values),
    )


def ref(name: str) -> ObjectRef:
    return ObjectRef(cluster="default", namespace=NAMESPACE, name=name)


def is_alive(pid: int) -> bool:
    """Whether a process of this id runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def eventually(check: Callable[[], Any], what: str, seconds: float = LONG) -> Any:
    """The first true answer of `check`; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:.0f} s"
        time.sleep(0.01)


class Machine:
    """The backend with an observer in a thread; `seen` keeps all facts of every job in the order they came."""

    def __init__(self, root: Path, snapshot: QueueSnapshot = SNAPSHOT) -> None:
        self.root = root
        self.backend = LocalBackend(root=root, cluster="default")
        self.backend.write_queues(snapshot)
        queues = tuple((queue.name, queue.name) for queue in snapshot.queues)
        space = TeamSpace(cluster="default", namespace=NAMESPACE, team="vision", queues=queues)
        self.backend.provision(space)
        self.seen: dict[str, list[AttemptFacts]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._task: Any = None
        self._over = threading.Event()

    # --- observing ---

    def start(self) -> None:
        self._over.clear()
        self._task = asyncio.run_coroutine_threadsafe(self._observe(), self._loop)

    def pause(self) -> None:
        """Stop observing, as a portal that ends without stopping its jobs."""
        self._task.cancel()
        assert self._over.wait(LONG), "the observer did not end"

    def stop(self) -> None:
        self.pause()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LONG)

    async def _observe(self) -> None:
        try:
            async with contextlib.aclosing(self.backend.observe()) as facts:
                async for fact in facts:
                    self.seen.setdefault(fact.name, []).append(fact)
        finally:
            self._over.set()

    # --- doing ---

    def submit(self, name: str, script: str = "true", *, secrets: dict[str, str] | None = None, **work: Any) -> JobSpec:
        spec = make_spec(name, script, **work)
        self.backend.create(spec, secrets or {})
        return spec

    def narrow(self, queue: str, **amounts: int) -> None:
        """Change a queue's quotas."""
        queues = tuple(
            replace(each, quotas=quotas(each.quotas[0].flavor, **amounts)) if each.name == queue else each
            for each in self.backend.read_queues().queues
        )
        self.backend.write_queues(replace(self.backend.read_queues(), queues=queues))

    # --- seeing ---

    def latest(self, name: str) -> AttemptFacts | None:
        seen = self.seen.get(name)
        return seen[-1] if seen else None

    def wait(self, name: str, check: Callable[[AttemptFacts], Any], what: str, seconds: float = LONG) -> AttemptFacts:
        def met() -> AttemptFacts | None:
            facts = self.latest(name)
            return facts if facts is not None and check(facts) else None

        found: AttemptFacts = eventually(met, f"{name}: {what}", seconds)
        return found

    def wait_running(self, name: str, seconds: float = LONG) -> AttemptFacts:
        return self.wait(name, lambda facts: any(pod.phase == "Running" for pod in facts.pods), "running", seconds)

    def wait_over(self, name: str, seconds: float = LONG) -> AttemptFacts:
        return self.wait(name, lambda facts: facts.job is not None and facts.job.conditions, "its end", seconds)

    def wait_gone(self, name: str, seconds: float = LONG) -> AttemptFacts:
        return self.wait(name, lambda facts: facts.job_gone, "its deletion", seconds)

    def wait_said(self, name: str, text: str, seconds: float = LONG) -> None:
        eventually(lambda: text in self.log(name, follow=False), f"{name} saying {text!r}", seconds)

    def reason(self, name: str) -> str:
        """Kueue's message about why a job waits; "" once it does not."""
        facts = self.latest(name)
        if facts is None or facts.workload is None:
            return ""
        waiting = (each for each in facts.workload.conditions if each.type == "QuotaReserved" and not each.status)
        return next((each.message for each in waiting), "")

    def raw_log(self, pod: PodFacts, *, follow: bool = True, since: Any = None) -> bytes:
        """Everything that the log endpoint sends for a pod."""
        place = ContainerRef(
            cluster="default", namespace=NAMESPACE, pod=pod.name, pod_uid=pod.uid, container="main", restart=0
        )

        async def read() -> bytes:
            return b"".join([chunk async for chunk in self.backend.read_log(place, since=since, follow=follow)])

        return asyncio.run_coroutine_threadsafe(read(), self._loop).result(LONG)

    def log(self, name: str, *, index: int = 0, follow: bool = True) -> str:
        """The text of a pod's log without time stamps."""
        facts = self.latest(name)
        pod = next((pod for pod in facts.pods if pod.index == index), None) if facts is not None else None
        if pod is None or not (self.root / "pods" / pod.uid / "log").exists():
            return ""
        lines = self.raw_log(pod, follow=follow).split(b"\n")
        return "\n".join(line.partition(b" ")[2].decode(errors="surrogateescape") for line in lines)

    def pid_said(self, name: str) -> int:
        """The process id that a job printed as its first line."""
        eventually(lambda: "\n" in self.log(name, follow=False), f"{name} printing its process id")
        return int(self.log(name, follow=False).split("\n")[0])

    def runner_of(self, name: str) -> int:
        facts = self.latest(name)
        assert facts is not None
        pattern = str(self.root / "pods" / facts.pods[0].uid)
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and entry.name != str(os.getpid()):
                with contextlib.suppress(OSError):
                    if pattern in (entry / "cmdline").read_text():
                        return int(entry.name)
        raise AssertionError(f"{name} has no runner")
