"""`GET /metrics`: for who shows the token, at whatever address a scraper asks, and cheap however large the site is."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from channels.testing import HttpCommunicator
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from portal.config.asgi import application
from portal.core import leases
from portal.jobs.models import State
from portal.jobs.selectors import figures as jobs
from portal.logs.models import Cause, Stream
from portal.logs.services import note_gap
from portal.teams.models import Membership, Team
from portal.web import metrics as module
from portal.web.metrics import figures
from tests import factories
from tests.live.conftest import cookie
from tests.support.metrics import scraped

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = "what Prometheus knows"


@pytest.fixture(autouse=True)
def _token(settings: Any) -> None:
    settings.BEAMTIME_METRICS_TOKEN = TOKEN


def ask(method: str = "GET", **headers: str) -> Any:
    """As a scraper does: by the pod's address, without a cookie."""
    sent = {"host": "10.0.0.7:8000", **headers}
    pairs = [(name.encode(), value.encode()) for name, value in sent.items()]
    answer = async_to_sync(HttpCommunicator(application, method, "/metrics", headers=pairs).get_response)(timeout=20)
    return answer | {"headers": dict(answer["headers"])}


def scrape() -> dict[str, float]:
    answer = ask(authorization=f"Bearer {TOKEN}")
    assert answer["status"] == 200
    return scraped(answer["body"].decode())


def test_who_shows_the_token_gets_the_numbers() -> None:
    answer = ask(authorization=f"bearer {TOKEN}")
    assert answer["status"] == 200
    assert answer["headers"][b"content-type"].startswith(b"text/plain")
    assert answer["headers"][b"cache-control"] == b"no-store"
    found = scraped(answer["body"].decode())
    assert found["beamtime_database_up"] == 1
    assert 'beamtime_log_followers{state="reading"}' in found
    assert "process_cpu_seconds_total" in found
    assert not [name for name in found if name.endswith("_created")]
    newer = ask(authorization=f"Bearer {TOKEN}", accept="application/openmetrics-text; version=1.0.0")
    assert newer["headers"][b"content-type"].startswith(b"application/openmetrics-text")
    assert newer["body"].endswith(b"# EOF\n")


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN} ü", TOKEN])
def test_everybody_else_is_refused(shown: str) -> None:
    answer = ask(**({"authorization": shown} if shown else {}))
    assert (answer["status"], answer["headers"][b"www-authenticate"]) == (401, b"Bearer")
    assert b"beamtime_" not in answer["body"]


def test_a_session_opens_nothing_not_even_an_administrators() -> None:
    admin = factories.make_user("admin", is_superuser=True, is_staff=True)
    assert ask(cookie=cookie(admin).decode())["status"] == 401


@pytest.mark.parametrize("shown", ["Bearer ", "Bearer x"])
def test_without_a_token_in_the_settings_there_is_no_such_address(settings: Any, shown: str) -> None:
    settings.BEAMTIME_METRICS_TOKEN = ""
    answer = ask(authorization=shown, host="localhost")
    assert answer["status"] == 404
    assert b"Nothing here" in answer["body"]


def test_it_is_only_read() -> None:
    assert ask("POST", authorization=f"Bearer {TOKEN}")["status"] == 405
    assert ask("HEAD", authorization=f"Bearer {TOKEN}")["status"] == 200


def test_figures_of_the_database_are_those_of_the_moment() -> None:
    found = scrape()
    assert found["beamtime_watch_lease_seconds"] == float("-inf")
    assert found['beamtime_jobs_active{state="running"}'] == 0
    site, team = factories.make_site(), Team.objects.create(slug="vision", name="Vision")
    member = factories.make_user("member")
    Membership.objects.create(team=team, user=member)
    job = factories.make_job(team, member, site.cpu, state=State.RUNNING)
    factories.make_job(team, member, site.cpu)
    stream, ended = factories.make_stream(job), factories.make_stream(job)
    Stream.objects.filter(pk=ended.pk).update(completed_at=job.submitted_at)
    note_gap(stream_id=stream.pk, before_line=1, cause=Cause.ROTATED)
    leases.take(name="watch:default", holder="watch-1", ttl=timedelta(seconds=15))
    found = scrape()
    assert found['beamtime_jobs_active{state="running"}'] == 1
    assert found['beamtime_jobs_active{state="submitted"}'] == 1
    assert found["beamtime_dispatch_due"] == 1
    assert 0 < found["beamtime_dispatch_oldest_due_seconds"] < 60
    assert 0 < found["beamtime_jobs_oldest_submitted_seconds"] < 60
    assert (found["beamtime_log_streams_open"], found["beamtime_log_streams_unsealed"]) == (1, 1)
    assert (found['beamtime_log_gaps{cause="rotated"}'], found['beamtime_log_gaps{cause="full"}']) == (1, 0)
    assert found["beamtime_ingest_parcels"] == 0
    assert 0 < found["beamtime_watch_lease_seconds"] <= 15


def test_a_scrape_asks_seven_questions_however_much_there_is() -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as caught:
            list(figures())
        return len(caught)

    assert asked() == 7
    site, team, member = factories.make_site(), Team.objects.create(slug="v", name="V"), factories.make_user("member")
    for state in (*State, *State):
        job = factories.make_job(team, member, site.cpu, state=state)
        note_gap(stream_id=factories.make_stream(job).pk, before_line=1, cause=Cause.SKIPPED)
    assert asked() == 7


def is_gone() -> None:
    raise OperationalError("the server is gone")


def hangs() -> None:
    time.sleep(1)


@pytest.mark.parametrize("trouble", [is_gone, hangs])
def test_while_the_database_is_away_the_process_still_tells_of_itself(
    monkeypatch: pytest.MonkeyPatch, trouble: Callable[[], None]
) -> None:
    monkeypatch.setattr(jobs, "due", trouble)
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    found = scrape()
    assert found["beamtime_database_up"] == 0
    assert "beamtime_jobs_submitted_total" in found
    assert not [name for name in found if name.startswith(("beamtime_jobs_active", "beamtime_log_gaps"))]
