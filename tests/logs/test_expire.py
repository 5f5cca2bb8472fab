"""The end of a text's time: said before, said afterwards, and never an empty window."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from portal.audit.models import Entry
from portal.core.clock import now
from portal.core.errors import Gone
from portal.jobs.models import Job, State
from portal.logs import selectors, services
from portal.logs.models import Chunk, Gap, Segment, Stream
from portal.teams.models import Team, User
from tests import factories
from tests.logs.stored import store_lines, training_lines


@pytest.fixture
def ended(job: Job) -> Job:
    """The job ended 31 days ago."""
    Job.objects.filter(pk=job.pk).update(state=State.SUCCEEDED, ended_at=now() - timedelta(days=31))
    job.refresh_from_db()
    return job


@pytest.fixture
def old(ended: Job, stream: Stream) -> Stream:
    """Its log: 3,000 lines, complete and sealed."""
    store_lines(stream, training_lines(3000))
    services.complete(stream_id=stream.pk)
    services.seal()
    return selectors.stream_for(factories.make_user("root", is_superuser=True), stream.pk)


def rule(team: Team, days: int | None, actor: User) -> None:
    services.set_retention(actor=actor, team=team, days=days)


def test_without_a_rule_a_log_is_kept_for_ever(old: Stream) -> None:
    assert services.expire() == 0
    assert selectors.expires_at(old) is None
    assert selectors.expiry_words(old) == ""
    assert len(selectors.lines(old, 1, 10).lines) == 10


def test_case_43_an_expired_log_says_when_and_by_whose_rule_and_is_never_an_empty_one(
    old: Stream, team: Team, admin_user: User, member: User
) -> None:
    digest, size = old.sha256, old.bytes
    rule(team, 30, admin_user)
    assert services.expire() == 1
    stream = selectors.stream_for(member, old.pk)
    assert not Segment.objects.filter(stream=stream).exists()
    assert not Chunk.objects.filter(stream=stream).exists()
    assert (stream.next_line, stream.bytes, stream.sha256) == (3001, size, digest)
    assert stream.purged_at is not None
    words = selectors.expiry_words(stream)
    assert words == f"Expired on {now():%-d %B %Y} by the rule of Vision: 3,000 lines, {size:,} bytes, sha256 {digest}."
    assert selectors.trouble_of(stream) == words
    for page in (selectors.lines(stream, 1, 10), selectors.tail(stream, 10)):
        assert (page.expired, page.complete, page.next) == (words, True, 3001)
    with pytest.raises(Gone, match="by the rule of Vision"):
        b"".join(selectors.content(stream))
    client = APIClient()
    client.force_authenticate(member)
    for part in ("lines", "download"):
        answer = client.get(f"/api/v1/streams/{stream.pk}/{part}/")
        assert (answer.status_code, answer.json()["detail"]) == (410, words)
    assert client.get(f"/api/v1/streams/{stream.pk}/").json()["trouble"] == words
    assert services.expire() == 0


def test_the_page_of_the_job_says_it_too(old: Stream, team: Team, admin_user: User, member: User) -> None:
    rule(team, 30, admin_user)
    services.expire()
    browser = Client()
    browser.force_login(member)
    page = browser.get(f"/teams/{team.slug}/jobs/{old.job_id}/log/")
    assert page.status_code == 200
    assert "by the rule of Vision" in page.content.decode()


def test_before_that_one_can_see_until_when_it_is_kept(
    old: Stream, team: Team, admin_user: User, member: User, settings: Any, django_assert_num_queries: Any
) -> None:
    settings.BEAMTIME_LOG_RETENTION_DAYS = 90
    stream = selectors.stream_for(member, old.pk)
    assert stream.job.ended_at is not None
    assert selectors.expires_at(stream) == stream.job.ended_at + timedelta(days=90)
    assert selectors.expiry_words(stream).endswith("by the rule of the site.")
    rule(team, 60, admin_user)
    with django_assert_num_queries(2):
        (listed,) = selectors.streams_of(stream.job)
        assert selectors.expires_at(listed) == stream.job.ended_at + timedelta(days=60)
        assert selectors.expiry_words(listed).startswith("Kept until")
    assert services.expire() == 0
    rule(team, 0, admin_user)
    assert selectors.expires_at(selectors.stream_for(member, old.pk)) is None


def test_each_team_has_its_rule_and_the_site_has_one_for_the_others(
    old: Stream, team: Team, other_team: Team, admin_user: User, outsider: User, site: factories.Site, settings: Any
) -> None:
    theirs = factories.make_job(
        other_team, outsider, site.cpu, state=State.SUCCEEDED, ended_at=now() - timedelta(days=31)
    )
    other = factories.make_stream(theirs)
    services.complete(stream_id=other.pk)
    settings.BEAMTIME_LOG_RETENTION_DAYS = 7
    rule(team, 0, admin_user)
    assert services.expire() == 1
    assert selectors.stream_for(outsider, other.pk).expired_at is not None
    assert "by the rule of the site" in selectors.expiry_words(selectors.stream_for(outsider, other.pk))
    assert Stream.objects.get(pk=old.pk).expired_at is None
    rule(team, None, admin_user)
    assert services.expire() == 1


def test_what_is_not_over_does_not_expire(job: Job, stream: Stream, settings: Any) -> None:
    settings.BEAMTIME_LOG_RETENTION_DAYS = 1
    store_lines(stream, training_lines(10))
    assert services.expire() == 0  # the job runs
    Job.objects.filter(pk=job.pk).update(state=State.SUCCEEDED, ended_at=now() - timedelta(days=9))
    assert services.expire() == 0  # its log is still being read
    services.complete(stream_id=stream.pk)
    assert services.expire() == 1  # not sealed yet, which does not matter
    assert not Chunk.objects.filter(stream=stream).exists()
    assert services.seal() == 0


def test_gaps_stay(old: Stream, team: Team, admin_user: User) -> None:
    services.note_gap(stream_id=old.pk, before_line=100, cause="rotated", lines=5)  # type: ignore[arg-type]
    rule(team, 30, admin_user)
    services.expire()
    assert Gap.objects.filter(stream=old).count() == 1
    assert "5 lines are missing before line 100" in selectors.trouble_of(Stream.objects.get(pk=old.pk))


def test_an_interrupted_deletion_goes_on_and_nobody_reads_half_a_text(
    old: Stream, team: Team, admin_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule(team, 30, admin_user)
    with monkeypatch.context() as patch:
        patch.setattr("django.db.models.query.QuerySet.delete", lambda rows: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            services.expire()
    assert Segment.objects.filter(stream=old).exists()
    assert selectors.lines(old, 1, 10).expired != ""
    services.expire()
    assert not Segment.objects.filter(stream=old).exists()


def test_a_download_whose_text_expires_meanwhile_breaks_off(
    ended: Job, stream: Stream, team: Team, admin_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.logs.services.sealing.SEGMENT_BYTES", 100 * 1024)
    store_lines(stream, training_lines(5000))
    services.complete(stream_id=stream.pk)
    services.seal()
    portions = selectors.content(stream)
    next(portions)
    rule(team, 30, admin_user)
    services.expire()
    with pytest.raises(Gone, match="Expired"):
        b"".join(portions)


def test_a_rule_is_made_by_the_administrator_and_audited(admin_user: User, team: Team) -> None:
    browser = Client()
    browser.force_login(admin_user)
    answer = browser.post(reverse("admin:logs_retention_add"), {"team": team.pk, "days": "30"})
    assert answer.status_code == 302
    entry = Entry.objects.filter(action="team.log_retention").latest("at")
    assert (entry.actor_name, entry.after) == ("admin", {"log_retention_days": 30})
    key = team.log_retention.pk
    browser.post(reverse("admin:logs_retention_change", args=[key]), {"days": "7"})
    browser.post(reverse("admin:logs_retention_delete", args=[key]), {"post": "yes"})
    before = [row.before for row in Entry.objects.filter(action="team.log_retention").order_by("at")]
    assert before == [{"log_retention_days": days} for days in (None, 30, 7)]
