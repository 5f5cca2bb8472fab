"""Looking before the click: the same answers as submitting, and nothing written."""

from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core.errors import Forbidden, Refused
from portal.jobs.models import Job
from portal.jobs.services import dispatch, preview, submit
from portal.quotas.models import LocalQueue
from portal.teams.models import User
from tests.jobs.cluster import ClusterDouble
from tests.jobs.conftest import Ask, attempt_of


def test_it_shows_what_would_be_made_and_writes_nothing(cluster: ClusterDouble, ask: Ask) -> None:
    with CaptureQueriesContext(connection) as caught:
        found = preview(ask(values={"gpu": {"flavor": "h100", "count": 2}}, name="first light"))
    assert all(query["sql"].startswith("SELECT") for query in caught)
    assert not Job.objects.exists()
    assert not LocalQueue.objects.exists()
    assert cluster.calls == []
    assert (found.name, found.queue, found.template_version) == ("first light", "gpu", 1)
    assert (found.spec.work.gpus, found.estimate.per_hour) == (2, Decimal("4.80"))
    assert found.manifests[0]["metadata"]["namespace"] == "bt-vision"


def test_what_is_made_is_what_was_shown_but_for_the_id(cluster: ClusterDouble, ask: Ask) -> None:
    shown = preview(ask()).spec
    job = submit(ask()).job
    dispatch(attempt_of(job).pk)
    (thing,) = cluster.things.values()
    made = thing.spec
    assert shown.work == made.work
    same = ("cluster", "namespace", "queue", "cluster_queue", "team", "submitted_by", "display_name", "node_selector")
    assert [getattr(shown, name) for name in same] == [getattr(made, name) for name in same]


def test_a_secret_is_shown_by_its_name_only(cluster: ClusterDouble, ask: Ask) -> None:
    found = preview(ask(values={"token": "hf_secret"}))
    assert found.spec.work.secret_env == ("HF_TOKEN",)
    assert "hf_secret" not in repr(found)


def test_it_refuses_for_the_same_reasons(cluster: ClusterDouble, ask: Ask, outsider: User) -> None:
    request = ask(name="a/b", values={"cores": 900})
    problems = []
    for verb in (preview, submit):
        with pytest.raises(Refused) as caught:
            verb(request)
        problems.append(caught.value.problems)
    assert problems[0] == problems[1]
    with pytest.raises(Forbidden):
        preview(Ask(ask.team, outsider)())
