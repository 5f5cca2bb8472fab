"""What stands beside the answer on the job's page: facts, runs; and what happens where a fact is missing."""

from typing import Any

from portal.costs.services import rate
from portal.jobs.models import Attempt, Event, Job, Pod, State
from portal.logs.models import Stream
from portal.teams.models import Team, User
from portal.teams.services import remove_member
from portal.usage.models import Interval
from tests.factories import Site, make_version
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
from tests.web.pages import as_person, html, words


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
