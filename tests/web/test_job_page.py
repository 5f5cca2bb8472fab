"""The job's page: its answer first, in every state, and the evidence under it."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client

from portal.catalog.models import VersionState
from portal.costs.services import rate
from portal.jobs.models import Attempt, Event, Job, Pod, State
from portal.logs.models import Stream
from portal.teams.models import Membership, Team, User
from portal.teams.services import remove_member
from portal.usage.models import Interval
from tests.factories import Site, make_user, make_version
from tests.web.job_stories import PARTS, TWO_GPUS, address, ago, ended, happened, log_of, pod_of, runs, story
from tests.web.pages import as_person, elements, html, queries, words

OUT_OF_MEMORY = "Killed: the container passed its memory limit of 16 GiB. Ask for more memory, or hold less at once."


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
    assert f"Not with the cluster yet for 2 h {reason}" in words(as_person(member).get(address(job)))


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
    job = runs(site, team, member, cancel_requested_at=ago(seconds=25), cancel_requested_by_name="lead")
    Job.objects.filter(pk=job.pk).update(state=State.CANCELLING)
    said = words(as_person(member).get(address(job)))
    assert "Stopping. Waiting for the cluster to say that the last process has ended." in said
    assert "Cancelling 25 s by lead" in said


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
    assert "Stop “llama”? It has run for 2 h 14 min." in running
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


# --- what stands beside it --------------------------------------------------------------------------------------------


def test_pretended_gpus_are_labelled_wherever_they_stand(site: Site, team: Team, member: User) -> None:
    said = words(as_person(member).get(address(runs(site, team, member))))
    assert "GPUs 2 × H100 (pretended)" in said
    assert "Flavor h100 pretended" in said
    assert "2 × H100 (pretended) held for" in said


def test_a_name_is_text_whatever_it_holds(site: Site, team: Team, member: User) -> None:
    name = "<script>alert(1)</script> & “quotes” 'single' 日本語 " + "x" * 120
    job = runs(site, team, member, name=name, attempt={"nodes": ["<b>node</b>"], "cluster_message": "<i>words</i>"})
    page = as_person(member).get(address(job))
    assert "<script>alert(1)" not in html(page)
    assert "<b>node" not in html(page)
    assert "<i>words" not in html(page)
    assert name in words(page)


def test_what_was_filled_in_stands_among_the_facts_and_secrets_do_not(site: Site, team: Team, member: User) -> None:
    definition: dict[str, Any] = {
        "parameters": [
            {"name": "epochs", "kind": "integer", "label": "Epochs"},
            {"name": "script", "kind": "script", "label": "Script"},
            {"name": "limit", "kind": "duration", "label": "Time limit"},
            {"name": "token", "kind": "secret", "label": "Token"},
        ],
        "work": {"time_limit": {"from": "limit"}},
    }
    version = make_version("train", definition)
    values = {"epochs": 30, "script": "#!/bin/sh\necho hello\n", "limit": 28_800, "of an older version": True}
    job = runs(site, team, member, template_version=version, values=values)
    said = words(as_person(member).get(address(job)))
    assert "Filled in Epochs 30 Script 3 lines of an older version yes" in said
    assert "echo hello" not in said


def test_an_array_shows_each_run_and_those_that_failed_first(site: Site, team: Team, member: User) -> None:
    work = type(TWO_GPUS)(image="busybox", command=("true",), runs=4, parallelism=2, time_limit_seconds=3600)
    job = story(site, team, member, State.RUNNING, work=work, started_at=ago(minutes=14), attempt={"nodes": ["n1"]})
    begin = ago(minutes=14)
    pod_of(job, index=0, started_at=begin, ended_at=ago(minutes=7), phase="Succeeded", exit_code=0, node="n1")
    failed = pod_of(
        job, index=1, started_at=begin, ended_at=ago(minutes=9), phase="Failed", exit_code=2, node="n2",
        reason="Ended with exit code 2. The end of its log usually says why.",
    )  # fmt: skip
    pod_of(job, index=2, started_at=ago(minutes=7), node="n1")
    log_of(job, "out of luck", pod=failed)
    said = words(as_person(member).get(address(job)))
    assert "2 of 4" in said
    table = said[said.index("Runs 3 pods, 4 runs in all") :]
    assert (
        table.index("Run 1 Failed Ended with exit code 2.") < table.index("Run 2 Running") < table.index("Run 0 Succ")
    )
    assert "n2 5 min 2 1 line" in table


def test_a_run_that_was_tried_again_counts_as_what_it_is_now(site: Site, team: Team, member: User) -> None:
    job = runs(site, team, member)
    Pod.objects.update(phase="Failed", ended_at=ago(minutes=30), past=True)
    pod_of(job, started_at=ago(minutes=20))
    said = words(as_person(member).get(address(job)))
    assert "Pods 2 pods" in said
    assert said.index("Run 0 Running") < said.index("Run 0 earlier Failed")


def test_a_thousand_runs_are_not_a_thousand_rows(site: Site, team: Team, member: User) -> None:
    work = type(TWO_GPUS)(image="busybox", command=("true",), runs=200)
    job = story(site, team, member, State.RUNNING, work=work, started_at=ago(minutes=1))
    attempt = job.attempts.get()
    Pod.objects.bulk_create(
        Pod(attempt=attempt, uid=f"u{n}", name=f"p{n}", index=n, phase="Running") for n in range(200)
    )
    client = as_person(member)
    page = client.get(address(job))
    assert html(page).count('<th scope="row"') == 30
    assert "Show all 200" in words(page)
    assert html(client.get(address(job), {"runs": "all"})).count('<th scope="row"') == 200


# --- what is not there ------------------------------------------------------------------------------------------------


def test_case_63_no_missing_fact_breaks_a_page(site: Site, team: Team, member: User) -> None:
    """Dropping each optional field in turn breaks no part of the page, whatever the state."""
    job = ended(site, team, member, State.FAILED, reason=OUT_OF_MEMORY, reason_code="out_of_memory")
    log_of(job, "a line")
    happened(job, "running", ago(minutes=30), "The first container runs.")
    rate()
    client = as_person(member)
    for model in (Job, Attempt, Pod, Stream, Interval, Event):
        for field in model._meta.concrete_fields:
            if not field.null:
                continue
            before = dict(model.objects.values_list("pk", field.attname))
            model.objects.update(**{field.attname: None})
            for state in (State.FAILED, State.RUNNING):
                Job.objects.update(state=state)
                for part in ("", "cost/", "events/"):
                    assert client.get(address(job, part)).status_code == 200, (model, field.name, state, part)
            for pk, value in before.items():
                model.objects.filter(pk=pk).update(**{field.attname: value})


def test_case_63_a_job_of_which_nothing_is_known_has_a_page(site: Site, team: Team, member: User) -> None:
    job = story(site, team, member, State.RUNNING, estimate=None)
    Attempt.objects.all().delete()
    for part in PARTS:
        assert as_person(member).get(address(job, part)).status_code == 200


def test_case_69_the_cost_stays_when_everybody_has_left(
    site: Site, team: Team, member: User, lead: User, auditor: User
) -> None:
    """The person leaves while the job runs; the team is closed; the price of the time stands all the same."""
    job = runs(site, team, member, minutes=60)
    remove_member(actor=lead, team=team, user=member)
    member.delete()
    Interval.objects.update(ended_at=ago(minutes=30))
    Pod.objects.update(phase="Succeeded", ended_at=ago(minutes=30))
    Attempt.objects.update(state=State.SUCCEEDED, ended_at=ago(minutes=30), stored_at=ago(minutes=30))
    Job.objects.update(state=State.SUCCEEDED, ended_at=ago(minutes=30))
    Team.objects.update(closed_at=ago(minutes=20))
    rate()
    said = words(as_person(auditor).get(address(job)))
    assert "It cost €2.40." in said
    assert "member" in said


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
