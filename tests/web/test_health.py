"""What load balancers and probes ask."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import DatabaseError
from django.test import Client

from portal.core import leases
from portal.core.clock import now
from portal.core.models import Lease
from portal.web import health

pytestmark = pytest.mark.django_db
WATCH = f"watch:{settings.BEAMTIME_CLUSTER_NAME}"


def test_a_process_that_answers_is_alive() -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}


def test_ready_while_the_cluster_is_watched() -> None:
    leases.take(name=WATCH, holder="watch-1", ttl=timedelta(seconds=15))
    answer = Client().get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "database": "ok", "files": "ok", "broker": "none", "watch": "ok"}


def test_a_silent_watcher_is_named_and_pages_go_on() -> None:
    Lease.objects.create(name=WATCH, holder="watch-1", expires_at=now() - timedelta(seconds=60))
    answer = Client().get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert answer.json()["watch"].startswith("silent for")


def test_without_a_database_it_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def cursor(self) -> None:
            raise DatabaseError("gone")

    monkeypatch.setattr(health, "connection", Broken())
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["database"] == "unreachable"


def test_a_server_whose_files_were_not_collected_is_not_ready_and_says_what_to_do(
    settings: Any, tmp_path: Path
) -> None:
    settings.STATIC_ROOT = tmp_path
    collected = {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}
    settings.STORAGES = settings.STORAGES | {"staticfiles": collected}
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["files"]) == (503, "missing: run manage.py collectstatic")


def test_nothing_is_kept_on_the_way() -> None:
    assert "no-store" in Client().get("/readyz").headers["Cache-Control"]


def test_a_broker_that_does_not_answer_is_named(settings: object) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # type: ignore[attr-defined]
    assert Client().get("/readyz").json()["broker"] == "unreachable"
