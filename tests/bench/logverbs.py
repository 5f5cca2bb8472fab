"""What the measures of logs have done inside a process of the portal's own: `python -m tests.bench.logverbs VERB`.

The lines are those of a training, about 108 bytes each: 10,000,000 of them are a little more than 1 GiB.
"""

from __future__ import annotations

import random
import time
from array import array
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import UUID, uuid4

from tests.bench.verbs import answer

if TYPE_CHECKING:
    from portal.jobs.models import Job

NANO = 1_000_000_000
START, STEP = 1_790_000_000 * NANO, 10_000_000
BATCH = 10_000
# Sealed whenever so many batches have been added, as a worker does it beside a running job.
SEALED_EVERY = 50
# Endings of lines. More than any compressor looks back over, and met in an order that never repeats within that.
TAILS, STRIDE = 5003, 1013
LINES_A_PORTION = 5


def write(team: str, count: str, path: str, sealed: str) -> dict[str, Any]:
    """A job that is over, whose log has so many lines, and the same text as a file.

    `sealed`: "yes" seals it and proves it by its digest; "no" leaves it as it came.
    """
    from portal.logs import services

    job = _job(team, over=True)
    stream = _stream(job)
    with Path(path).open("wb") as file:
        for number, first in enumerate(range(1, int(count) + 1, BATCH), 1):
            _add(stream, first, min(BATCH, int(count) + 1 - first), file)
            if sealed == "yes" and number % SEALED_EVERY == 0:
                services.seal_stream(stream_id=stream)
    services.complete(stream_id=stream)
    if sealed == "yes":
        services.seal_stream(stream_id=stream)
    _vacuum()
    return {"job": job.pk, "stream": stream, "bytes": Path(path).stat().st_size}


def running(team: str) -> dict[str, Any]:
    """A job that runs and has said one line."""
    from portal.logs import services
    from portal.logs.specs import Record

    job = _job(team, over=False)
    stream = _stream(job)
    services.append(stream_id=stream, first_line=1, records=[Record(time.time_ns(), b"begin\n")])
    return {"job": job.pk, "stream": stream}


def speak(stream: str, portions: str, rate: str) -> dict[str, Any]:
    """Add so many portions of `LINES_A_PORTION` lines at an even pace. Each line begins with its moment."""
    from portal.logs import services
    from portal.logs.models import Stream
    from portal.logs.specs import Record

    line = Stream.objects.values_list("next_line", flat=True).get(pk=stream)
    begin, late = time.monotonic(), 0.0
    for number in range(int(portions)):
        due = begin + number / float(rate)
        time.sleep(max(0.0, due - time.monotonic()))
        late = max(late, time.monotonic() - due)
        moment = time.time_ns()
        texts = [b"%d step %d of a training that says a little, loss=0.123456 lr=1e-5\n" % (moment, line + k)
                 for k in range(LINES_A_PORTION)]  # fmt: skip
        records = [Record(moment, text) for text in texts]
        assert services.append(stream_id=UUID(stream), first_line=line, records=records)
        line += LINES_A_PORTION
    return {"last": line - 1, "seconds": time.monotonic() - begin, "late": late}


def people(team: str, count: str) -> dict[str, Any]:
    """So many people of the team, with a token each: one person may have only so many sockets."""
    from datetime import timedelta

    from portal.teams.models import Scope, Team, User
    from portal.teams.services import add_member, issue_token

    tokens = []
    for number in range(int(count)):
        user = User(username=f"crowd-{number}", email=f"crowd-{number}@example.org")
        user.set_unusable_password()
        user.save()
        add_member(actor=None, team=Team.objects.get(slug=team), username=user.username)
        tokens.append(issue_token(user=user, name="bench", scope=Scope.READ, lifetime=timedelta(days=1))[1])
    return {"tokens": tokens}


def _add(stream: UUID, first: int, count: int, file: IO[bytes]) -> None:
    from portal.logs import services
    from portal.logs.specs import Batch

    texts = [
        b"[rank%d] step %d/10000000 %b" % (n & 7, n, _tails[n * STRIDE % TAILS]) for n in range(first, first + count)
    ]
    times = array("q", range(START + first * STEP, START + (first + count) * STEP, STEP))
    assert services.append(stream_id=stream, first_line=first, records=Batch(times, texts, trusted=True))
    file.write(b"".join(texts))


def _tail(number: int) -> bytes:
    chance = random.Random(number)
    return b"loss=%.8f lr=%.3e grad=%.5f tokens/s=%d eta 3 days, %d:%02d:%02d\n" % (
        chance.random() * 3,
        chance.random() / 1e4,
        chance.random(),
        chance.randrange(100_000, 110_000),
        chance.randrange(1, 9),
        chance.randrange(60),
        chance.randrange(60),
    )


_tails = [_tail(number) for number in range(TAILS)]


def _job(team: str, *, over: bool) -> Job:
    from django.utils import timezone

    from portal.jobs.models import Attempt, Job
    from tests.bench import inside

    inside.submit(team, "1", "true")
    job = Job.objects.filter(team__slug=team).latest("submitted_at")
    now = timezone.now()
    facts = (
        {"state": "succeeded", "started_at": now, "ended_at": now} if over else {"state": "running", "started_at": now}
    )
    Job.objects.filter(pk=job.pk).update(**facts)
    Attempt.objects.filter(job=job).update(**facts, due_at=None, created_at=now, stored_at=now if over else None)
    return job


def _stream(job: Job) -> UUID:
    from portal.clusters.specs import ContainerRef
    from portal.logs import services

    ref = ContainerRef(cluster="default", namespace="bench", pod="bench-0", pod_uid=str(uuid4()), container="main")
    return services.open_stream(job_id=job.pk, attempt_number=1, ref=ref).pk


def _vacuum() -> None:
    """What a database does by itself in the hours after so many deleted rows."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


if __name__ == "__main__":
    answer({verb.__name__: verb for verb in (write, running, speak, people)})
