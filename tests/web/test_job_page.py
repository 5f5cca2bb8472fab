"""The job's page: its answer first, in every state, and the evidence under it."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client

from portal.catalog.models import VersionState
from portal.costs.services import rate
from portal.jobs.models import Job, State
from portal.teams.models import Membership, Team, User
from tests.factories import Site, make_user, make_version
from tests.web.job_stories import (
    OUT_OF_MEMORY,
    PARTS,
    TWO_GPUS,
    address,
    ago,
    ended,
    happened,
    log_of,
    pod_of,
    runs,
    story,
)
from tests.web.pages import as_person, elements, html, queries, words

# --- the answer on top ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_a_page_with_all_its_parts(site: Site, team: Team, member: User, state: State) -> None:
    job = story(site, team, member, state, name="llama lr 2e-5", ended_at=ago(minutes=1))
    client = as_person(member)
    for part in PARTS:
        page = client.get(address(job, part))
        assert page.status_code == 200
        said = words(page)
        assert f"{state.label} llama lr 2e-5" in said
        assert f"<title>{state.label} · llama lr 2e-5 · Beamtime</title>" in html(page)


def test_a_submitted_job_is_safely_stored(site: Site, team: Team, member: User) -> None:
    said = words(as_person(member).get(address(story(site, team, member, State.SUBMITTED))))
    assert "Safely stored. The cluster is told of it at this moment." in said


def test_a_job_that_the_cluster_did_not_hear_of_says_since_when(site: Site, team: Team, member: User) -> None:
    reason = "No word from the cluster since 14:20. It is asked again until it answers; nothing is lost."
    job = story(site, team, member, State.SUBMITTED, reason=reason, reason_code="no_word")
    said = words(as_person(member).get(address(job)))
    assert "Not with the cluster yet for 2 h" in said
    assert reason in said


def test_a_starting_job_says_where_its_container_is_set_up(site: Site, team: Team, member: User) -> None:
    attempt = {"admitted_at": ago(minutes=3), "nodes": ["h100-03"], "flavor": "h100"}
    said = words(as_person(member).get(address(story(site, team, member, State.STARTING, attempt=attempt))))
    assert "Starting for 3 min" in said
    assert "its container is being set up on h100-03." in said


def test_an_image_that_cannot_be_pulled_is_named_with_the_clusters_words(site: Site, team: Team, member: User) -> None:
    attempt = {
        "admitted_at": ago(minutes=3),
        "cluster_reason": "ImagePullBackOff",
        "cluster_message": "Back-off pulling image",
    }
    reason = "The image cannot be pulled. Check its name and tag; the cluster keeps trying."
    job = story(site, team, member, State.STARTING, reason=reason, reason_code="image", attempt=attempt)
    said = words(as_person(member).get(address(job)))
    assert "Image cannot be pulled" in said
    assert "train/llm:2.6.1 Check its name and tag" in said
    assert "The cluster's own words ImagePullBackOff: Back-off pulling image" in said


def test_a_running_job_says_how_long_where_and_until_when(site: Site, team: Team, member: User) -> None:
    said = words(as_person(member).get(address(runs(site, team, member, minutes=134))))
    assert "Running for 2 h 14 min on h100-03. Its limit of 8 h ends it at" in said
    assert "Queued" in said
    assert "Starting 1 min on h100-03 Running 2 h 14 min since" in said


def test_a_job_without_a_limit_says_so(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member, work=type(TWO_GPUS)(image="busybox", command=("true",), gpus=1, flavor="h100"))
    assert "It has no time limit." in words(as_person(member).get(address(job)))


def test_a_job_being_stopped_waits_for_the_cluster_in_words(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member, cancel_requested_at=ago(minutes=25), cancel_requested_by_name="lead")
    Job.objects.filter(pk=job.pk).update(state=State.CANCELLING)
    said = words(as_person(member).get(address(job)))
    assert "Stopping. Waiting for the cluster to say that the last process has ended." in said
    assert "Cancelling 25 min" in said
    assert "by lead" in said


def test_a_job_that_succeeded_says_what_it_took(site: Site, team: Team, member: User) -> None:
    job = ended(site, team, member, State.SUCCEEDED, minutes=60)
    rate()
    said = words(as_person(member).get(address(job)))
    assert "Succeeded after 1 h at" in said
    assert "It waited 10 min. It cost €4.80." in said
    assert "exit code 0" in said


def test_a_job_that_failed_says_why_and_what_to_do(site: Site, team: Team, member: User) -> None:
    attempt = {"cluster_reason": "OOMKilled", "cluster_message": "BackoffLimitExceeded: Job has reached the limit"}
    job = ended(
        site, team, member, State.FAILED, reason=OUT_OF_MEMORY, reason_code="out_of_memory", exit_code=137,
        attempt=attempt,
    )  # fmt: skip
    said = words(as_person(member).get(address(job)))
    assert "Failed: out of memory after 1 h" in said
    assert OUT_OF_MEMORY in said
    assert "The cluster's own words OOMKilled: BackoffLimitExceeded" in said
    assert "exit code 137" in said


def test_a_job_cancelled_in_the_queue_cost_nothing(site: Site, team: Team, member: User) -> None:
    fields: dict[str, Any] = {
        "reason": "Cancelled by member.",
        "reason_code": "cancelled",
        "cancel_requested_by_name": "member",
    }
    job = story(site, team, member, State.CANCELLED, ended_at=ago(minutes=1), **fields)
    said = words(as_person(member).get(address(job)))
    assert "Cancelled by member at" in said
    assert "It never ran, so it cost nothing." in said
    assert "It ended before a container started, so there is no log." in said


def test_a_rejected_job_shows_the_clusters_words(site: Site, team: Team, member: User) -> None:
    attempt = {"cluster_reason": "Forbidden", "cluster_message": "images must come from registry.example.org"}
    reason = "The cluster refused to make the job. Change what the words below say, then run it again."
    job = story(site, team, member, State.REJECTED, ended_at=ago(), reason=reason, attempt=attempt)
    said = words(as_person(member).get(address(job)))
    assert f"Rejected {reason}" in said
    assert "Forbidden: images must come from registry.example.org" in said


def test_a_lost_job_says_what_is_known(site: Site, team: Team, member: User) -> None:
    reason = "Node h100-04 left the cluster while the job was on it. Run it again."
    job = ended(site, team, member, State.LOST, reason=reason, reason_code="node_lost")
    said = words(as_person(member).get(address(job)))
    assert "Lost: its node left" in said
    assert reason in said


def test_a_preempted_jobs_earlier_run_stays_in_its_steps(site: Site, team: Team, member: User) -> None:
    back = ago(minutes=10)
    job = story(
        site, team, member, State.QUEUED, reason="Preempted: another job took the quota. It is in the queue again.",
        reason_code="preempted", attempt={"requeued_at": back},
    )  # fmt: skip
    happened(job, "starting", back - timedelta(minutes=62))
    happened(job, "running", back - timedelta(minutes=60))
    happened(job, "preempted", back)
    said = words(as_person(member).get(address(job)))
    assert "Back in the queue" in said
    assert "Starting 2 min" in said
    assert "Running 1 h preempted at" in said
    assert "Queued 10 min" in said


def test_many_earlier_stays_are_one_step(site: Site, team: Team, member: User) -> None:
    job = story(site, team, member, State.QUEUED, reason_code="preempted", attempt={"requeued_at": ago(minutes=5)})
    for minutes in (95, 65, 35, 5):
        happened(job, "starting", ago(minutes=minutes + 20))
        happened(job, "running", ago(minutes=minutes + 19))
        happened(job, "preempted", ago(minutes=minutes))
    page = as_person(member).get(address(job))
    assert html(page).count('class="bt-step-state"') <= 7
    assert "3 earlier stays" in words(page)


# --- what one may do to it --------------------------------------------------------------------------------------------


def test_what_runs_is_stopped_and_what_waits_is_cancelled(site: Site, team: Team, member: User) -> None:
    client = as_person(member)
    running = words(client.get(address(runs(site, team, member, minutes=134, name="llama"))))
    assert "Stop Run again Clone and edit" in running
    assert "Stop “llama”? It has run for 2 h 14 min" in running
    assert "So far it cost €10.7" in running
    assert "Keep it running Stop the job" in running
    waiting = words(client.get(address(story(site, team, member, State.QUEUED, name="llama"))))
    assert "Cancel “llama”? It leaves the queue and costs nothing." in waiting


def test_who_may_not_stop_it_sees_no_button(site: Site, team: Team, member: User, auditor: User, lead: User) -> None:
    job = runs(site, team, member)
    colleague = make_user("colleague")
    Membership.objects.create(team=team, user=colleague)
    offers = {
        user.username: ("job-stop" in page, "rerun-" in page)
        for user in (member, lead, colleague, auditor)
        for page in [html(as_person(user).get(address(job)))]
    }
    assert offers == {
        "member": (True, True), "lead": (True, True), "colleague": (False, True), "auditor": (False, False),
    }  # fmt: skip


def test_a_newer_version_is_offered_where_there_is_one(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    client = as_person(member)
    assert "the newest" not in words(client.get(address(job)))
    make_version("plain")
    page = client.get(address(job))
    assert "Run again with version 2, the newest" in words(page)
    assert {"type": "hidden", "name": "newest", "value": "yes"} in elements(page, "input")


def test_a_retired_version_is_run_again_with_the_newest_at_once(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    make_version("plain")
    type(job.template_version).objects.filter(pk=job.template_version_id).update(state=VersionState.RETIRED)
    said = words(as_person(member).get(address(job)))
    assert "Stop Run again with version 2 Clone and edit" in said
    assert "the newest" not in said


# --- how much it asks of the database ---------------------------------------------------------------------------------


def asked(client: Client, job: Job) -> dict[str, int]:
    """How many questions each part of a job's page asks."""
    return {part: len(queries(partial(client.get, address(job, part)))) for part in PARTS}


def test_the_questions_to_the_database_do_not_grow_with_the_job(site: Site, team: Team, member: User) -> None:
    client = as_person(member)
    work = type(TWO_GPUS)(image="busybox", command=("true",), gpus=1, flavor="h100", runs=40)
    small = runs(site, team, member, work=work)
    log_of(small, "one line")
    client.get(address(small))
    few = asked(client, small)
    large = runs(site, team, member, work=work)
    for index in range(1, 30):
        log_of(large, *(f"line {n}" for n in range(40)), pod=pod_of(large, index=index, started_at=ago(minutes=9)))
        happened(large, f"run_failed{index}", ago(minutes=index))
    assert asked(client, large) == few
    assert few[""] <= 30
