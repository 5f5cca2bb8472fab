"""Hints are sent by name; each name is a task, and each task finds its work in the rows."""

import re
from pathlib import Path
from typing import Any

from celery import current_app

import portal
from portal.jobs import tasks
from portal.jobs.models import State
from portal.jobs.services import submit
from tests.jobs.cluster import ClusterDouble
from tests.jobs.conftest import Ask, attempt_of

_NUDGE = re.compile(r'nudge\(\s*"([^"]+)"')


def _registered() -> set[str]:
    current_app.loader.import_default_modules()
    return set(current_app.tasks)


def test_every_nudge_in_the_house_names_a_task() -> None:
    nudged = {name for path in Path(portal.__path__[0]).rglob("*.py") for name in _NUDGE.findall(path.read_text())}
    assert {"jobs.dispatch", "jobs.sweep"} <= nudged
    assert nudged <= _registered()


def test_every_task_of_the_beat_exists(settings: Any) -> None:
    assert {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} <= _registered()


def test_submitting_sends_one_hint_after_the_commit(
    ask: Ask, monkeypatch: Any, django_capture_on_commit_callbacks: Any
) -> None:
    sent: list[tuple[str, Any]] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, args, **_: sent.append((name, tuple(args))))
    with django_capture_on_commit_callbacks(execute=True):
        job = submit(ask()).job
        assert sent == []
    assert sent == [("jobs.dispatch", (attempt_of(job).pk,))]


def test_a_broker_that_is_down_loses_no_job(
    ask: Ask, cluster: ClusterDouble, monkeypatch: Any, django_capture_on_commit_callbacks: Any
) -> None:
    def down(*_: Any, **__: Any) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(current_app, "send_task", down)
    with django_capture_on_commit_callbacks(execute=True):
        job = submit(ask()).job
    tasks.sweep()
    assert attempt_of(job).state == State.QUEUED


def test_the_tasks_do_what_their_names_say(ask: Ask, cluster: ClusterDouble) -> None:
    job = submit(ask()).job
    tasks.dispatch(attempt_of(job).pk)
    assert attempt_of(job).state == State.QUEUED
    tasks.dispatch(attempt_of(job).pk)
    tasks.dispatch(10**9)
    tasks.collect_finished()
    assert sum(cluster.made.values()) == 1
