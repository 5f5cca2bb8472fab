"""Everybody at once: workers, the watcher and people act on the same rows, each with a connection of its own."""

import random
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise

import pytest
import time_machine
from django.db import connection

from portal.core.clock import now
from portal.core.errors import Refused
from portal.jobs.models import TERMINAL, Attempt, Event, Job, State
from portal.jobs.policy import may_follow
from portal.jobs.services import cancel, dispatch, observe, submit, sweep
from portal.teams.models import User
from tests.jobs.cluster import ClusterDouble, lost_answer
from tests.jobs.conftest import Ask
from tests.jobs.facts import Told, ended, pod, running

JOBS = 12


def _together(*works: Callable[[], object]) -> None:
    """All at once; whatever breaks in one of them breaks the test."""
    broken: list[BaseException] = []
    start = threading.Barrier(len(works))

    def act(work: Callable[[], object]) -> None:
        try:
            start.wait(10)
            work()
        except BaseException as error:
            broken.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=act, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert broken == []


def _watcher(cluster: ClusterDouble, jobs: Sequence[Job], seed: int) -> None:
    """Tells what it sees of each object: some of it late, some of it twice."""
    chance = random.Random(seed)
    for number, job in enumerate(jobs):
        attempt = Attempt.objects.get(job=job)
        story = Told(name=attempt.object_name, namespace=attempt.namespace, job_id=str(job.id))
        story.created()
        thing = cluster.things.get(attempt.object_name)
        if thing is None:
            continue
        story._job(uid=thing.uid, created_at=thing.created_at)
        one = pod(f"pod-{job.id.hex}")
        told = [story.now, story.admitted(10), story.pods(running(one, 30))]
        if number % 2:
            told += [story.pods(ended(one, since=30, until=60, code=0)), story.complete(61)]
        else:
            told += [story.gone(70)]
        for facts in (*told, *chance.sample(told, 2)):
            observe(facts)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", range(3))
def test_races_double_nothing_lose_nothing_and_step_only_where_allowed(
    cluster: ClusterDouble, ask: Ask, member: User, seed: int
) -> None:
    jobs = [submit(ask()).job for _ in range(JOBS)]
    chance = random.Random(seed)
    cluster.latency = 0.002
    cluster.fail("create", lost_answer(), after=True, times=3)

    def people() -> None:
        for job in chance.sample(jobs, 5):
            try:
                cancel(actor=member, job=Job.objects.get(pk=job.pk))
            except Refused:
                continue

    def nudged() -> None:
        for pk in Attempt.objects.values_list("pk", flat=True):
            dispatch(pk)

    def watch() -> None:
        _watcher(cluster, jobs, seed)

    _together(sweep, nudged, people, watch)
    _together(sweep, people, watch)
    for minute in (2, 4, 6):
        with time_machine.travel(now() + timedelta(minutes=minute)):
            sweep()
    _watcher(cluster, jobs, seed)
    attempts = Attempt.objects.select_related("job")
    assert attempts.count() == JOBS
    assert all(count == 1 for count in cluster.made.values())
    for attempt in attempts:
        assert attempt.state == attempt.job.state
        assert attempt.claim_token is None
        if attempt.state in TERMINAL:
            assert attempt.due_at is None
        way = [State.SUBMITTED, *_states(attempt.job)]
        assert all(may_follow(before, after) for before, after in pairwise(way)), way


def _states(job: Job) -> list[State]:
    kinds = Event.objects.filter(job=job, kind__in=State.values).exclude(kind="submitted").order_by("pk")
    return [State(kind) for kind in kinds.values_list("kind", flat=True)]
