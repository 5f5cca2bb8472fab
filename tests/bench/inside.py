"""What a measure has done inside a process of the portal's own: `python -m tests.bench.inside VERB` prints JSON."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.bench.verbs import answer

if TYPE_CHECKING:
    from portal.jobs.models import Attempt, Job, Pod

# A script as people send it, so that a list which reads too much pays for it.
SCRIPT = "#!/bin/sh\n" + "echo a line of a script that is neither short nor long\n" * 35
BATCH = 2000
ARRAY = 8
# State, and how many of a hundred jobs end in it.
ENDS = {"succeeded": 80, "failed": 12, "cancelled": 6, "rejected": 2}
PERSON = "member"


def fill(team: str, count: str) -> dict[str, int]:
    """Add so many jobs of the past to a team: all over, five minutes apart, one in a hundred an array."""
    from portal.jobs.models import Attempt, Job, Pod

    model = _submit(team, {"script": SCRIPT}, "a run of the past")
    Attempt.objects.filter(job=model).update(state="cancelled", due_at=None, withdrawn_at=model.submitted_at)
    Job.objects.filter(pk=model.pk).update(state="cancelled", ended_at=model.submitted_at)
    chance = random.Random(7)
    for first in range(1, int(count), BATCH):
        jobs = [_past(model, chance, number) for number in range(first, min(first + BATCH, int(count)))]
        Job.objects.bulk_create(jobs)
        attempts = Attempt.objects.bulk_create([_attempt(job) for job in jobs])
        arrays = [attempt for attempt in attempts if attempt.job.work["runs"] > 1]
        Pod.objects.bulk_create([_pod(attempt, index) for attempt in arrays for index in range(ARRAY)])
    _analyse()
    return {"jobs": Job.objects.count()}


def submit(team: str, count: str, script: str) -> dict[str, int]:
    """Submit so many jobs by the verb itself, hints included."""
    for number in range(int(count)):
        _submit(team, {"script": script, "cores": 0.1, "memory": "64 MiB"}, f"job {number}")
    return {"jobs": int(count)}


def queries(team: str) -> dict[str, int]:
    """How many queries the first page of the job list asks, as API and as page."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from portal.teams.models import User

    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.get(username=PERSON))
    found = {}
    for name, path in (("api", f"/api/v1/jobs/?team={team}"), ("page", f"/teams/{team}/jobs/")):
        with CaptureQueriesContext(connection) as asked:
            answer = client.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        found[name] = len(asked)
    return found


def password(word: str) -> dict[str, str]:
    """Let the person sign in with it."""
    from portal.teams.models import User

    user = User.objects.get(username=PERSON)
    user.set_password(word)
    user.save()
    return {"user": PERSON}


def manifest(team: str) -> dict[str, Any]:
    """The manifest of a small job of a team, exactly as it is made in the cluster."""
    from portal.jobs.selectors import manifests_of

    (made,) = manifests_of(_submit(team, {"script": "true", "cores": 0.1, "memory": "64 MiB"}, "a model"))
    return made


def _submit(team: str, values: dict[str, Any], name: str) -> Job:
    from portal.jobs.services import submit as verb
    from portal.jobs.specs import JobRequest
    from portal.teams.models import Team, User

    request = JobRequest(
        team=Team.objects.get(slug=team),
        user=User.objects.get(username=PERSON),
        template="script",
        version=None,
        values=values,
        name=name,
        queue="cpu",
        idempotency_key=None,
    )
    return verb(request).job


def _past(model: Job, chance: random.Random, number: int) -> Job:
    """A job like the model, somewhat earlier."""
    from portal.jobs.models import Job

    submitted_at = model.submitted_at - timedelta(minutes=5 * number)
    state = chance.choices(list(ENDS), list(ENDS.values()))[0]
    started_at = submitted_at + timedelta(seconds=chance.randrange(2, 7200))
    fields = {field.attname: getattr(model, field.attname) for field in Job._meta.concrete_fields}
    return Job(
        **fields
        | {
            "id": uuid4(),
            "name": f"run {number} of the past",
            "work": model.work | ({"runs": ARRAY} if number % 100 == 0 else {}),
            "state": state,
            "reason": "The script ended with exit code 1." if state == "failed" else "",
            "submitted_at": submitted_at,
            "started_at": started_at,
            "ended_at": started_at + timedelta(seconds=chance.randrange(5, 20_000)),
            "revision": 6,
        }
    )


def _attempt(job: Job) -> Attempt:
    from portal.clusters.policy import namespace_for, object_name
    from portal.jobs.models import Attempt

    return Attempt(
        job=job,
        number=1,
        state=job.state,
        namespace=namespace_for(job.team.slug),
        object_name=object_name(job.id, 1),
        object_uid=str(uuid4()),
        created_at=job.submitted_at,
        admitted_at=job.started_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        stored_at=job.ended_at,
        withdrawn_at=job.ended_at,
        tries=1,
    )


def _pod(attempt: Attempt, index: int) -> Pod:
    from portal.jobs.models import Pod

    return Pod(
        attempt=attempt, uid=str(uuid4()), name=f"{attempt.object_name}-{index}", index=index, phase="Succeeded",
        node="node-1", started_at=attempt.started_at, ended_at=attempt.ended_at, exit_code=0,
    )  # fmt: skip


def _analyse() -> None:
    """What a database does by itself in the night after so many new rows."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if connection.vendor == "sqlite" else "VACUUM ANALYZE")


if __name__ == "__main__":
    answer({verb.__name__: verb for verb in (fill, submit, queries, password, manifest)})
