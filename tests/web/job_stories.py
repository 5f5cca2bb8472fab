"""Jobs at a point of their life, as the watcher would have left them: rows with the cluster's times."""

import itertools
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from portal.clusters.specs import ContainerRef, WorkSpec
from portal.core.clock import now
from portal.funds.selectors import estimate_for
from portal.jobs.models import Attempt, Event, Job, Pod, State
from portal.logs import services as logs
from portal.logs.models import Stream
from portal.logs.specs import Record
from portal.teams.models import Team, User
from portal.usage.models import Interval
from tests.factories import Site, make_job

_pods = itertools.count(1)
OUT_OF_MEMORY = "Killed: the container passed its memory limit of 16 GiB. Ask for more memory, or hold less at once."
TWO_GPUS = WorkSpec(
    image="train/llm:2.6.1", command=("python", "train.py"), cpu_millicores=4000, memory_mib=16_384, gpus=2,
    flavor="h100", time_limit_seconds=8 * 3600,
)  # fmt: skip


def ago(**span: float) -> datetime:
    return (now() - timedelta(**span)).replace(microsecond=0)


def story(site: Site, team: Team, user: User, state: State, *, work: WorkSpec = TWO_GPUS, **fields: Any) -> Job:
    """A job of two H100 in queue gpu, submitted two hours ago. Fields of the attempt come as `attempt={…}`."""
    attempt = fields.pop("attempt", {})
    submitted = fields.pop("submitted_at", ago(hours=2))
    estimate = estimate_for(
        gpus=work.gpus, gpu_models=["NVIDIA H100"] if work.gpus else [], cores=Decimal(4), gib=Decimal(16),
        runs=work.runs, seconds=work.time_limit_seconds, at=submitted,
    )  # fmt: skip
    values = {
        "submitted_at": submitted,
        "gpu_model": "NVIDIA H100" if work.gpus else "",
        "estimate": estimate.to_json(),
        **fields,
    }
    job = make_job(team, user, site.gpu if work.gpus else site.cpu, state=state, work=work, **values)
    mirrored = {
        name: getattr(job, name) for name in ("started_at", "ended_at", "reason", "reason_code") if getattr(job, name)
    }
    Attempt.objects.filter(job=job).update(**mirrored | attempt)
    return job


def runs(site: Site, team: Team, user: User, *, minutes: int = 60, **fields: Any) -> Job:
    """A job that waited ten minutes and has run for so long on node h100-03, with its pod and what that holds."""
    started = ago(minutes=minutes)
    attempt = {"admitted_at": started - timedelta(minutes=1), "nodes": ["h100-03"], "flavor": "h100"}
    attempt |= fields.pop("attempt", {})
    fields.setdefault("submitted_at", started - timedelta(minutes=11))
    job = story(site, team, user, State.RUNNING, started_at=started, attempt=attempt, **fields)
    pod_of(job, started_at=started, node="h100-03")
    return job


def ended(site: Site, team: Team, user: User, state: State, *, minutes: int = 60, **fields: Any) -> Job:
    """A job that ran for so long and ended five minutes ago, and what it held."""
    end = ago(minutes=5)
    started = end - timedelta(minutes=minutes)
    code = fields.pop("exit_code", 0 if state == State.SUCCEEDED else 1)
    phase = "Succeeded" if state == State.SUCCEEDED else "Failed"
    attempt = {
        "admitted_at": started - timedelta(minutes=1), "nodes": ["h100-03"], "flavor": "h100", "exit_code": code,
        "stored_at": end,
    }  # fmt: skip
    attempt |= fields.pop("attempt", {})
    fields.setdefault("submitted_at", started - timedelta(minutes=11))
    job = story(site, team, user, state, started_at=started, ended_at=end, attempt=attempt, **fields)
    pod_of(job, started_at=started, ended_at=end, node="h100-03", phase=phase, exit_code=code)
    return job


def pod_of(job: Job, *, index: int = 0, started_at: datetime | None = None, **fields: Any) -> Pod:
    """A pod of the newest attempt, and the interval of its GPUs."""
    attempt = job.attempts.last()
    assert attempt is not None
    values = {"phase": "Running", "scheduled_at": started_at, "started_at": started_at, **fields}
    number = next(_pods)
    pod = Pod.objects.create(attempt=attempt, uid=f"uid-{number}", name=f"pod-{number}", index=index, **values)
    if started_at is not None and job.work["gpus"]:
        Interval.objects.create(
            job=job, team=job.team, attempt_number=attempt.number, pod_uid=pod.uid, pod_name=pod.name, node=pod.node,
            resource="nvidia.com/gpu", units=job.work["gpus"], flavor="h100", gpu_model="NVIDIA H100",
            started_at=started_at, ended_at=pod.ended_at, seen_at=now(),
        )  # fmt: skip
    return pod


def log_of(job: Job, *lines: str | bytes, pod: Pod | None = None, done: bool = False, open_text: str = "") -> Stream:
    """The log of the job's pod with these lines, each stamped a second after the one before."""
    pod = pod or Pod.objects.filter(attempt__job=job).last() or pod_of(job)
    ref = ContainerRef(cluster="default", namespace="team", pod=pod.name, pod_uid=pod.uid, container="main")
    stream = logs.open_stream(job_id=job.pk, attempt_number=1, ref=ref, pod_index=pod.index)
    texts = [line if isinstance(line, bytes) else f"{line}\n".encode() for line in lines]
    begin = 1_795_000_000 * 10**9
    records = [Record(begin + n * 10**9, text) for n, text in enumerate(texts)]
    assert logs.append(stream_id=stream.pk, first_line=1, records=records, open_text=open_text)
    if done:
        logs.complete(stream_id=stream.pk)
    stream.refresh_from_db()
    return stream


def happened(job: Job, kind: str, at: datetime, message: str = "") -> Event:
    return Event.objects.create(
        job=job, attempt_number=1, at=at, source="kueue", kind=kind, message=message, key=f"{kind}:{at.isoformat()}"
    )


def address(job: Job, part: str = "") -> str:
    return f"/teams/{job.team.slug}/jobs/{job.pk}/{part}"


PARTS: Sequence[str] = ("", "log/", "cost/", "events/", "manifest/")
