"""Submitting: one promise per wish, or everything that speaks against it."""

import json
import threading
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.audit.models import Entry
from portal.catalog.models import TemplateVersion, VersionState
from portal.core.clock import now
from portal.core.errors import Conflicting, Forbidden, Problem, Refused
from portal.core.secrets import open_sealed
from portal.jobs.models import Attempt, Event, Job, JobSecret, State
from portal.jobs.services import submit
from portal.quotas.models import ClusterQueue, FlavorQuota, LocalQueue
from portal.teams.models import Team, User
from tests import factories
from tests.jobs.conftest import Ask


def _refused(request: Any) -> dict[str, Problem]:
    with pytest.raises(Refused) as caught:
        submit(request)
    assert not Job.objects.exists(), "nothing is half done"
    return {problem.field: problem for problem in caught.value.problems}


# --- what is accepted ------------------------------------------------------------------------------------------------


def test_a_job_is_a_row_that_is_due_now(ask: Ask, team: Team, member: User, version: TemplateVersion) -> None:
    before = now()
    submitted = submit(ask(name="first light"))
    job = Job.objects.get()
    assert (submitted.created, submitted.job) == (True, job)
    assert (job.state, job.name, job.team, job.submitted_by, job.template_version) == (
        State.SUBMITTED, "first light", team, member, version,
    )  # fmt: skip
    attempt = job.attempts.get()
    assert attempt.due_at is not None
    assert before <= attempt.due_at <= now()
    assert attempt.object_name == f"bt-{job.id.hex}-1"
    assert list(Event.objects.values_list("kind", "source")) == [("submitted", "beamtime")]


def test_it_is_written_down_who_submitted_what(ask: Ask, member: User) -> None:
    job = submit(ask()).job
    entry = Entry.objects.get(action="job.submit")
    assert (entry.actor_name, entry.subject_id) == (member.username, str(job.pk))
    assert entry.after == {"team": "vision", "template": "shell", "version": 1, "queue": "cpu", "rerun_of": ""}


def test_the_job_keeps_team_and_names_as_they_were(ask: Ask, team: Team) -> None:
    job = submit(ask()).job
    Team.objects.filter(pk=team.pk).update(name="Vision and Touch")
    job.refresh_from_db()
    assert (job.team_name, job.submitted_by_name) == ("Vision", "member")


def test_the_version_is_pinned_and_the_values_are_kept(ask: Ask, version: TemplateVersion) -> None:
    job = submit(ask(values={"cores": 2})).job
    factories.make_version("shell", {**version.definition, "queue": "gpu"})
    job.refresh_from_db()
    assert job.template_version.number == 1
    assert job.values["cores"] == 2
    assert (job.work["cpu_millicores"], job.work["command"]) == (2000, ["/bin/sh", "-c", "echo hello"])


def test_the_estimate_is_what_was_shown_at_most(ask: Ask) -> None:
    job = submit(ask(values={"gpu": {"flavor": "h100", "count": 2}, "limit": "2 h"})).job
    assert job.estimate is not None
    assert (job.estimate["amount"], job.estimate["per_hour"], job.estimate["missing"]) == ("9.60", "4.80", [])
    assert job.gpu_model == "NVIDIA H100"


def test_without_a_price_the_estimate_says_what_lacks_one(ask: Ask) -> None:
    job = submit(ask()).job
    assert job.estimate is not None
    assert (job.estimate["amount"], job.estimate["missing"]) == (None, ["cpu"])


def test_the_chosen_flavors_node_labels_are_frozen_with_the_job(ask: Ask, site: factories.Site) -> None:
    site.gpu_flavor.node_labels = {"gpu": "h100"}
    site.gpu_flavor.save()
    job = submit(ask(values={"gpu": {"flavor": "h100", "count": 1}})).job
    assert job.node_selector == {"gpu": "h100"}
    assert submit(ask(values={"gpu": {"flavor": "", "count": 1}})).job.node_selector == {}, "Kueue stays free"


def test_submitting_asks_a_constant_number_of_questions(ask: Ask, site: factories.Site, team: Team) -> None:
    submit(ask())

    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            submit(ask(values={"token": "t"}, idempotency_key=str(Job.objects.count())))
        return len(caught)

    few = count()
    for number in range(5):
        queue = ClusterQueue.objects.create(cluster=site.cluster, name=f"more-{number}")
        FlavorQuota.objects.create(cluster_queue=queue, flavor=site.cpu_flavor, resource="cpu", nominal=8)
        factories.make_price("cpu", "0.01", valid_from=now() - timedelta(days=number + 1))
    assert count() == few
    assert few <= 17


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_a_secret_is_sealed_and_stands_nowhere_else(ask: Ask) -> None:
    secret = "hf_do-not-show-me"
    request = ask(values={"token": secret}, idempotency_key="k")
    job = submit(request).job
    kept = JobSecret.objects.get()
    assert kept.name == "HF_TOKEN"
    assert open_sealed(bytes(kept.sealed)) == secret
    assert secret not in repr(request)
    stored = json.dumps(
        [job.values, job.work, job.estimate, job.request_digest, list(Entry.objects.values_list("after"))]
    )
    assert secret not in stored
    assert job.work["secret_env"] == ("HF_TOKEN",)


# --- case 19: twice --------------------------------------------------------------------------------------------------


def test_case_19_the_repeat_of_a_request_gets_the_first_answer(ask: Ask) -> None:
    first = submit(ask(idempotency_key="form-1"))
    again = submit(ask(idempotency_key="form-1"))
    assert (first.created, again.created, again.job) == (True, False, first.job)
    assert (Job.objects.count(), Attempt.objects.count(), Event.objects.count()) == (1, 1, 1)


def test_case_19_another_body_under_the_same_key_is_refused(ask: Ask) -> None:
    submit(ask(idempotency_key="form-1"))
    for other in (
        ask(idempotency_key="form-1", name="other"),
        ask(idempotency_key="form-1", values={"script": "echo other"}),
        ask(idempotency_key="form-1", values={"token": "secret"}),
        ask(idempotency_key="form-1", queue="gpu"),
    ):
        with pytest.raises(Conflicting):
            submit(other)
    assert Job.objects.count() == 1


def test_case_19_the_repeat_is_answered_although_the_version_was_retired(ask: Ask, version: TemplateVersion) -> None:
    first = submit(ask(idempotency_key="form-1"))
    TemplateVersion.objects.filter(pk=version.pk).update(state=VersionState.RETIRED)
    assert submit(ask(idempotency_key="form-1")).job == first.job


def test_case_19_two_people_may_use_the_same_key(ask: Ask, team: Team, lead: User) -> None:
    first = submit(ask(idempotency_key="1"))
    second = submit(Ask(team, lead)(idempotency_key="1"))
    assert first.job != second.job


def test_case_19_without_a_key_every_request_is_a_new_wish(ask: Ask) -> None:
    assert submit(ask()).job != submit(ask()).job
    assert submit(ask(idempotency_key="")).created


@pytest.mark.django_db(transaction=True)
def test_case_19_a_double_click_that_races_makes_one_job(ask: Ask) -> None:
    """Several threads, each with a connection of its own, send the same form in the same moment."""
    start, found, broken = threading.Barrier(4), [], []

    def click() -> None:
        try:
            start.wait(10)
            found.append(submit(ask(idempotency_key="form-1")))
        except Exception as error:
            broken.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=click) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert broken == []
    assert len({submitted.job.pk for submitted in found}) == 1
    assert [submitted.created for submitted in found].count(True) == 1
    assert (Job.objects.count(), Attempt.objects.count()) == (1, 1)


# --- case 25: never fits ---------------------------------------------------------------------------------------------


@pytest.fixture
def small_queue(site: factories.Site) -> ClusterQueue:
    FlavorQuota.objects.filter(cluster_queue=site.cpu, resource="cpu").update(nominal=5)
    return site.cpu


def test_case_25_more_cores_than_the_queue_can_ever_give(ask: Ask, small_queue: ClusterQueue) -> None:
    problem = _refused(ask(values={"cores": 6}))["values.cores"]
    assert problem.message.startswith("Can never fit: it asks 6 cores, the most this queue can give is 5.")
    assert problem.code == "never_fits"
    assert submit(ask(values={"cores": 5})).created, "exactly the quota fits"


def test_case_25_more_gpus_than_the_queue_can_ever_give(ask: Ask) -> None:
    message = _refused(ask(values={"gpu": {"flavor": "h100", "count": 5}}))["values.gpu"].message
    assert "5" in message
    assert "4" in message


def test_case_25_more_memory_than_the_queue_can_ever_give(ask: Ask) -> None:
    message = _refused(ask(values={"memory": "33 GiB"}))["values.memory"].message
    assert "asks 33 GiB of memory, the most this queue can give is 32" in message


def test_case_25_runs_that_cannot_all_go_at_once(ask: Ask, small_queue: ClusterQueue) -> None:
    message = _refused(ask(values={"runs": 6}))["values.runs"].message
    assert "6 runs at once ask 6 cores, the most this queue can give is 5" in message


def test_case_25_what_may_be_borrowed_counts(ask: Ask, site: factories.Site, small_queue: ClusterQueue) -> None:
    ClusterQueue.objects.update(cohort="campus")
    lender = ClusterQueue.objects.create(cluster=site.cluster, name="lender", cohort="campus", open_to_all=False)
    FlavorQuota.objects.create(cluster_queue=lender, flavor=site.cpu_flavor, resource="cpu", nominal=10)
    assert submit(ask(values={"cores": 15})).created
    FlavorQuota.objects.filter(cluster_queue=small_queue, resource="cpu").update(borrowing_limit=Decimal(2))
    with pytest.raises(Refused, match="the most this queue can give is 7"):
        submit(ask(values={"cores": 8}))


# --- which queue -----------------------------------------------------------------------------------------------------


def test_work_without_gpus_goes_to_a_queue_without_gpus(ask: Ask, version: TemplateVersion) -> None:
    factories.make_version("shell", {**version.definition, "queue": "gpu"})
    job = submit(ask()).job
    assert (job.template_version.number, job.queue.cluster_queue.name) == (2, "cpu")


def test_work_with_gpus_goes_to_a_queue_that_has_them(ask: Ask) -> None:
    job = submit(ask(values={"gpu": {"flavor": "", "count": 1}})).job
    assert job.queue.cluster_queue.name == "gpu"


def test_gpu_queues_are_kept_for_jobs_that_ask_for_gpus(ask: Ask) -> None:
    message = _refused(ask(queue="gpu"))["queue"].message
    assert message == "ClusterQueue gpu is kept for jobs that ask for GPUs. Take cpu."


def test_where_there_is_no_other_queue_the_gpu_queue_takes_all(ask: Ask, site: factories.Site) -> None:
    ClusterQueue.objects.filter(pk=site.cpu.pk).update(removed_at=now())
    assert submit(ask()).job.queue.cluster_queue == site.gpu
    assert submit(ask(queue="gpu")).created


def test_an_unknown_queue_is_refused_with_those_there_are(ask: Ask) -> None:
    assert "There are: cpu, gpu." in _refused(ask(queue="night"))["queue"].message


def test_a_queue_of_other_teams_is_unknown(ask: Ask, site: factories.Site, other_team: Team) -> None:
    ClusterQueue.objects.filter(pk=site.gpu.pk).update(open_to_all=False)
    assert "There are: cpu." in _refused(ask(queue="gpu"))["queue"].message
    site.gpu.teams.add(other_team)
    assert "queue" in _refused(ask(queue="gpu"))


def test_a_flavor_that_the_queue_does_not_have_is_refused(ask: Ask) -> None:
    message = _refused(ask(values={"gpu": {"flavor": "b200", "count": 1}}))["values.gpu"].message
    assert "b200" in message
    assert "h100" in message


def test_a_queue_without_gpus_refuses_gpus(ask: Ask) -> None:
    assert "no GPUs" in _refused(ask(queue="cpu", values={"gpu": {"flavor": "", "count": 1}}))["values.gpu"].message


def test_the_team_gets_its_local_queue_once(ask: Ask, team: Team) -> None:
    submit(ask())
    submit(ask())
    assert LocalQueue.objects.filter(team=team).count() == 1


# --- who, what, when it is refused -----------------------------------------------------------------------------------


def test_who_is_not_in_the_team_may_not_submit(ask: Ask, outsider: User, auditor: User) -> None:
    for person in (outsider, auditor):
        with pytest.raises(Forbidden):
            submit(replace(ask(), user=person))
    assert not Job.objects.exists()


def test_a_closed_team_takes_no_new_jobs(ask: Ask, team: Team) -> None:
    team.closed_at = now()
    team.save()
    assert "closed" in _refused(ask())["team"].message


def test_unknown_templates_and_retired_versions_are_refused_with_the_remedy(ask: Ask, version: TemplateVersion) -> None:
    assert "shell" in _refused(ask(template="shel"))["template"].message
    assert "version" in _refused(ask(version=9))
    TemplateVersion.objects.filter(pk=version.pk).update(state=VersionState.RETIRED, message="Use train instead.")
    assert "Use train instead." in _refused(ask(version=1))["version"].message


def test_every_problem_is_named_at_once(ask: Ask) -> None:
    found = _refused(ask(name="a/b", values={"script": "", "cores": "many", "colour": "red"}))
    assert set(found) >= {"name", "values.script", "values.cores", "values.colour"}


def test_values_arrive_in_the_command_byte_for_byte(ask: Ask) -> None:
    script = "printf '%s' \"a=b $HOME \\ 'q' \t \n\" && echo ''\n"
    assert submit(ask(values={"script": script})).job.work["command"][2] == script
    Job.objects.get(work__command__2=script)


def test_texts_that_no_database_takes_are_refused(ask: Ask) -> None:
    for script in ("echo \0", "echo \ud800"):
        assert "values.script" in _refused(ask(values={"script": script}))


def test_a_script_of_2_mb_is_refused_with_both_sizes(ask: Ask) -> None:
    message = _refused(ask(values={"script": "#" * 2_000_000}))["values.script"].message
    assert "2,000,000" in message
    assert "100,000" in message


@pytest.mark.parametrize("key", ["x" * 201, "line\nbreak", "nul\0"])
def test_a_key_that_is_none_is_refused(ask: Ask, key: str) -> None:
    assert "idempotency_key" in _refused(ask(idempotency_key=key))
