"""What the cluster says becomes what people read: states, reasons, times and events."""

from dataclasses import replace
from datetime import timedelta

import pytest

from portal.clusters.specs import Condition, ContainerFacts
from portal.core import leases
from portal.core.errors import Missing
from portal.core.leases import FencedOff
from portal.jobs.models import Attempt, Event, Job, JobSecret, Pod, State
from portal.jobs.services import observe, observe_all
from portal.teams import services as teams
from portal.teams.models import Team, User
from tests import factories
from tests.jobs.conftest import attempt_of, told_of
from tests.jobs.facts import Told, at, ended, pod, running


def _kinds(job: Job) -> list[str]:
    return list(Event.objects.filter(job=job).values_list("kind", flat=True))


def _ran(told: Told, since: int = 30) -> None:
    observe(told.admitted(10))
    observe(told.pods(running(pod(), since)))


# --- the way ---------------------------------------------------------------------------------------------------------


def test_a_job_that_waits_shows_kueues_own_message(job: Job, told: Told) -> None:
    words = "couldn't assign flavors: insufficient unused quota for nvidia.com/gpu in flavor h100, 2 more needed"
    observe(told.pending(words))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code) == (State.QUEUED, "quota")
    assert "2 more GPUs are needed in flavor h100" in attempt.reason
    assert (attempt.cluster_reason, attempt.cluster_message) == ("Pending", words)


def test_a_job_goes_from_the_queue_to_its_end_by_the_clusters_clock(job: Job, told: Told) -> None:
    observe(told.pending("waits"))
    observe(told.admitted(10))
    assert attempt_of(job).state == State.STARTING
    observe(told.pods(pod()))
    observe(told.pods(running(pod(), 30)))
    assert attempt_of(job).state == State.RUNNING
    observe(told.pods(ended(pod(), since=30, until=930, code=0)))
    observe(told.complete(931))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.exit_code, attempt.flavor, attempt.nodes) == (
        State.SUCCEEDED,
        0,
        "h100",
        ["h100-02"],
    )
    times = [attempt.created_at, attempt.admitted_at, attempt.started_at, attempt.ended_at]
    assert times == [at(0), at(10), at(30), at(931)]
    job.refresh_from_db()
    assert (job.state, job.started_at, job.ended_at) == (State.SUCCEEDED, at(30), at(931))
    assert _kinds(job) == ["starting", "running", "succeeded"]


def test_a_job_that_is_first_heard_of_at_its_end_still_has_its_whole_story(job: Job, told: Told) -> None:
    told.admitted(10)
    told.pods(ended(pod(), since=30, until=31, code=3))
    observe(told.failed(32))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.admitted_at, attempt.started_at) == (State.FAILED, at(10), at(30))
    assert _kinds(job) == ["starting", "running", "failed"]


def test_each_change_raises_the_revision_once_and_a_repeat_raises_nothing(job: Job, told: Told) -> None:
    observe(told.admitted(10))
    job.refresh_from_db()
    before = job.revision
    observe(told.now)
    observe(told.now)
    job.refresh_from_db()
    assert job.revision == before
    observe(told.pods(running(pod(), 30)))
    job.refresh_from_db()
    assert job.revision == before + 1


def test_a_repeated_fact_costs_two_reads(job: Job, told: Told, django_assert_num_queries: object) -> None:
    _ran(told)
    with django_assert_num_queries(4):  # type: ignore[operator]
        # The transaction's savepoint opens and closes; between them the attempt with its job, and its pods.
        observe(told.now)


def test_facts_of_a_job_that_we_do_not_have_are_named_missing(job: Job, told: Told) -> None:
    with pytest.raises(Missing):
        observe(replace(told.now, name="bt-somebody-elses-1"))


def test_a_watcher_that_leads_no_more_changes_nothing(job: Job, told: Told) -> None:
    fence = leases.take(name="watch:default", holder="a", ttl=timedelta(seconds=10))
    assert fence is not None
    leases.release(name="watch:default", holder="a")
    assert leases.take(name="watch:default", holder="b", ttl=timedelta(seconds=10)) is not None
    with pytest.raises(FencedOff):
        observe(told.admitted(10), fence=fence)
    assert attempt_of(job).state == State.QUEUED


# --- many at once ----------------------------------------------------------------------------------------------------


def test_facts_of_many_jobs_are_taken_together_as_they_would_be_one_by_one(
    team: Team, member: User, site: factories.Site, django_assert_max_num_queries: object
) -> None:
    """What there is of all of them in two queries, an UPDATE and a look at the flavor for each, the rest in a few."""
    jobs = [factories.make_job(team, member, site.gpu, state=State.QUEUED) for _ in range(8)]
    told = [told_of(each) for each in jobs]
    for each in told[:4]:
        each.admitted(10)
    for each in told[4:]:
        each.pending("waits")
    with django_assert_max_num_queries(8 + 4 + 12):  # type: ignore[operator]
        assert observe_all([each.now for each in told]) == []
    assert [attempt_of(each).state for each in jobs] == [State.STARTING] * 4 + [State.QUEUED] * 4
    assert [_kinds(each) for each in jobs[:4]] == [["starting"]] * 4


def test_among_many_the_one_that_we_do_not_have_or_somebody_was_faster_with_is_named(job: Job, told: Told) -> None:
    told.admitted(10)
    strange = replace(told.now, name="bt-somebody-elses-1")
    elsewhere = replace(told.now, namespace="bt-language")
    assert observe_all([strange, told.now]) == [0]
    assert observe_all([elsewhere]) == [0]
    assert attempt_of(job).state == State.STARTING


# --- starting --------------------------------------------------------------------------------------------------------


def test_an_image_that_cannot_be_pulled_is_said_while_it_starts(job: Job, told: Told) -> None:
    observe(told.admitted(10))
    waiting = ContainerFacts(name="main", reason="ImagePullBackOff", message='Back-off pulling image "train/llm:2.7"')
    observe(told.pods(pod(containers=(waiting,))))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code) == (State.STARTING, "image")
    assert "image cannot be pulled" in attempt.reason
    assert "train/llm:2.7" in attempt.cluster_message
    assert "image" in _kinds(job)


def test_the_trouble_is_over_once_the_container_runs(job: Job, told: Told) -> None:
    observe(told.admitted(10))
    waiting = ContainerFacts(name="main", reason="ErrImagePull", message="i/o timeout")
    observe(told.pods(pod(containers=(waiting,))))
    observe(told.pods(running(pod(), 60)))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code, attempt.reason) == (State.RUNNING, "", "")


def test_a_pod_that_no_node_can_hold_is_said_with_the_schedulers_words(job: Job, told: Told) -> None:
    observe(told.admitted(10))
    full = Condition("PodScheduled", False, "Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    observe(told.pods(pod(node="", conditions=(full,))))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code, attempt.cluster_reason) == (
        State.STARTING,
        "unschedulable",
        "Unschedulable",
    )


def test_case_31_a_pod_that_no_node_was_given_to_has_no_start(job: Job, told: Told) -> None:
    """It waits and ends as expired: it never counts as having run."""
    observe(told.admitted(10))
    full = Condition("PodScheduled", False, "Unschedulable", "0/3 nodes are available")
    observe(told.pods(pod(node="", conditions=(full,))))
    observe(told.failed(4000, reason="DeadlineExceeded", message="Job was active longer than specified deadline"))
    job.refresh_from_db()
    assert (job.state, job.reason_code, job.started_at) == (State.FAILED, "time_limit", None)
    assert Pod.objects.get().scheduled_at is None


# --- failures told apart ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "code", "words"),
    [
        ({"code": 3}, "exit_code", "exit code 3"),
        ({"code": 139}, "signal", "signal 11 (SIGSEGV)"),
        ({"code": 137, "reason": "OOMKilled"}, "out_of_memory", "memory limit of 1 GiB"),
        (
            {"code": 128, "reason": "StartError", "message": "exec: no such file"},
            "cannot_start",
            "could not be started",
        ),
        ({"code": 137, "reason": "ContainerStatusUnknown"}, "vanished", "could not say"),
    ],
)
def test_ends_of_the_container_are_told_apart(
    job: Job, told: Told, container: dict[str, object], code: str, words: str
) -> None:
    _ran(told)
    observe(told.pods(ended(pod(), since=30, until=60, **container)))  # type: ignore[arg-type]
    observe(told.failed(61))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code) == (State.FAILED, code)
    assert words in attempt.reason
    assert attempt.exit_code == container["code"]
    assert "BackoffLimitExceeded" in attempt.cluster_message


@pytest.mark.parametrize(
    ("target", "pod_reason", "code"),
    [
        ("DeletionByTaintManager", "", "node_lost"),
        ("DeletionByPodGC", "", "node_lost"),
        ("TerminationByKubelet", "Terminated", "node_lost"),
        ("TerminationByKubelet", "Evicted", "evicted"),
        ("EvictionByEvictionAPI", "", "evicted"),
        ("", "NodeLost", "node_lost"),
    ],
)
def test_what_a_node_does_is_told_apart(job: Job, told: Told, target: str, pod_reason: str, code: str) -> None:
    _ran(told)
    conditions = (Condition("DisruptionTarget", True, target, "taint not-ready"),) if target else ()
    lost = replace(running(pod(), 30), phase="Failed", reason=pod_reason, conditions=conditions, gone=True)
    observe(told.pods(replace(lost, gone_at=at(80))))
    observe(told.failed(81))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code) == (State.FAILED, code)
    assert "h100-02" in attempt.reason


def test_a_pods_own_deadline_is_the_time_limit(job: Job, told: Told) -> None:
    """The kubelet ends the container by a signal; the pod's reason is what counts."""
    _ran(told)
    over = ended(pod(), since=30, until=3630, code=137)
    observe(told.pods(replace(over, reason="DeadlineExceeded", message="Pod was active on the node longer than")))
    observe(told.failed(3631))
    assert attempt_of(job).reason_code == "time_limit"


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("DeactivatedDueToMaximumExecutionTimeExceeded", "time_limit"),
        ("DeactivatedDueToRequeuingLimitExceeded", "deactivated"),
    ],
)
def test_kueue_gives_it_up_for_good(job: Job, told: Told, reason: str, code: str) -> None:
    _ran(told)
    observe(told.preempted(400, reason=reason))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code, attempt.cluster_reason) == (State.FAILED, code, reason)
    assert attempt.due_at is not None, "its Job goes on to exist, suspended, and must be taken away"


def test_a_workload_that_an_administrator_deactivates_is_held_not_failed(job: Job, told: Told) -> None:
    _ran(told)
    observe(told.preempted(400, reason="Deactivated"))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code) == (State.QUEUED, "held")


def test_a_job_deleted_behind_our_back_is_lost_and_not_made_again(job: Job, told: Told) -> None:
    _ran(told)
    observe(told.gone(200))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code, attempt.ended_at) == (State.LOST, "deleted_outside", at(200))
    assert (attempt.due_at, "not through Beamtime" in attempt.reason) == (None, True)


def test_another_object_under_our_name_means_that_ours_is_gone(job: Job, told: Told) -> None:
    _ran(told)
    assert told.now.job is not None
    observe(replace(told.now, job=replace(told.now.job, uid="another", created_at=at(500))))
    assert attempt_of(job).state == State.LOST


def test_a_silent_node_is_said_and_the_job_is_lost_when_no_other_pod_will_come(job: Job, told: Told) -> None:
    _ran(told)
    taken = Condition("DisruptionTarget", True, "DeletionByTaintManager", "")
    silent = replace(running(pod(), 30), conditions=(taken,), deletion_requested_at=at(90))
    observe(told.pods(silent))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code) == (State.RUNNING, "node_lost")
    assert "No word from node h100-02" in attempt.reason
    observe(told.failing(95))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code, attempt.ended_at) == (State.LOST, "node_lost", at(95))


# --- case 65 ---------------------------------------------------------------------------------------------------------


def test_case_65_out_of_memory_survives_the_pod(job: Job, told: Told) -> None:
    """Killed for memory, the pod deleted right after, and only then the Job's failure: the cause is still there."""
    _ran(told)
    dead = ended(pod(), since=30, until=60, code=137, reason="OOMKilled")
    observe(told.pods(dead))
    observe(told.pods(replace(dead, gone=True, gone_at=at(61))))
    observe(replace(told.failed(62), pods=()))
    attempt = attempt_of(job)
    assert (attempt.reason_code, attempt.exit_code, attempt.cluster_reason) == ("out_of_memory", 137, "OOMKilled")
    assert attempt.reason.startswith("Killed: the container passed its memory limit of 1 GiB.")
    kept = Pod.objects.get()
    assert (kept.gone, kept.reason_code, kept.exit_code, kept.ended_at) == (True, "out_of_memory", 137, at(60))


def test_case_65_a_pod_that_vanished_unread_is_said_to_have_vanished(job: Job, told: Told) -> None:
    _ran(told)
    observe(told.pods(replace(running(pod(), 30), gone=True, gone_at=at(70))))
    observe(told.failed(71))
    attempt = attempt_of(job)
    assert (attempt.reason_code, attempt.exit_code) == ("vanished", None)
    assert "vanished before its end was read" in attempt.reason


def test_case_65_a_cause_that_comes_after_the_end_is_still_taken(job: Job, told: Told) -> None:
    """The Job's watch may be faster than the pod's."""
    _ran(told)
    observe(told.failed(62))
    assert attempt_of(job).reason_code == "failed"
    observe(told.pods(ended(pod(), since=30, until=60, code=137, reason="OOMKilled")))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code, attempt.ended_at) == (State.FAILED, "out_of_memory", at(62))
    observe(told.pods(ended(pod("pod-2"), since=30, until=61, code=5)))
    assert attempt_of(job).reason_code == "out_of_memory", "a known reason stays"


# --- preemption ------------------------------------------------------------------------------------------------------


def test_preemption_brings_it_back_to_the_queue_and_uses_up_no_try(job: Job, told: Told) -> None:
    _ran(told)
    observe(told.preempted(300))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code) == (State.QUEUED, "preempted")
    assert (attempt.started_at, attempt.requeued_at) == (None, at(300))
    assert "no try is used up" in attempt.reason
    assert "Preempted to accommodate" in attempt.cluster_message
    observe(told.admitted(400))
    observe(told.pods(running(pod("pod-2", created=401), 410)))
    observe(told.pods(ended(pod("pod-2", created=401), since=410, until=500, code=0)))
    observe(told.complete(501))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.started_at, attempt.number) == (State.SUCCEEDED, at(410), 1)
    assert _kinds(job) == ["starting", "running", "preempted", "starting", "running", "succeeded"]
    assert Attempt.objects.count() == 1


def test_a_pod_of_the_stay_before_says_nothing_about_the_present_one(job: Job, told: Told) -> None:
    _ran(told)
    before = told.now
    observe(told.preempted(300))
    observe(before)
    assert attempt_of(job).state == State.QUEUED
    observe(told.admitted(400))
    stopped = ended(pod(), since=30, until=305, code=143)
    observe(told.pods(replace(stopped, deletion_requested_at=at(300), gone=True)))
    assert attempt_of(job).state == State.STARTING


def test_a_pod_that_is_heard_of_late_but_is_older_than_the_eviction_belongs_to_the_past(job: Job, told: Told) -> None:
    observe(told.admitted(10))
    before = told.now
    observe(told.preempted(300))
    observe(replace(before, pods=(running(pod("never-seen", created=20), 30),), workload=None))
    assert attempt_of(job).state == State.QUEUED


def test_an_eviction_told_again_does_not_undo_the_stay_after_it(job: Job, told: Told) -> None:
    """Even if the admission in between was never heard of."""
    _ran(told)
    evicted = told.preempted(300)
    observe(evicted)
    observe(replace(told.now, workload=None, pods=(running(pod("pod-2", created=401), 410),)))
    assert attempt_of(job).state == State.RUNNING
    observe(evicted)
    assert attempt_of(job).state == State.RUNNING


def test_an_admission_told_again_does_not_undo_the_eviction_after_it(job: Job, told: Told) -> None:
    admitted = told.admitted(10)
    observe(admitted)
    observe(told.preempted(300))
    observe(admitted)
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code) == (State.QUEUED, "preempted")


# --- arrays ----------------------------------------------------------------------------------------------------------


def test_an_array_fails_if_a_run_failed_and_says_which(job: Job, told: Told) -> None:
    Job.objects.update(work={**job.work, "runs": 3})
    observe(told.admitted(10))
    observe(told.pods(*(running(pod(f"p{index}", index=index), 30) for index in range(3))))
    observe(told.pods(ended(pod("p1", index=1), since=30, until=40, code=2)))
    assert attempt_of(job).state == State.RUNNING, "the other runs go on"
    observe(told.pods(*(ended(pod(f"p{index}", index=index), since=30, until=90, code=0) for index in (0, 2))))
    observe(told.failed(91, reason="FailedIndexes", message="Job has failed indexes"))
    attempt = attempt_of(job)
    assert (attempt.state, attempt.reason_code, attempt.exit_code) == (State.FAILED, "exit_code", 2)
    assert attempt.reason.startswith("1 run of 3 failed. Run 1: Ended with exit code 2.")
    assert list(attempt.pods.values_list("index", "exit_code")) == [(0, 0), (1, 2), (2, 0)]
    assert "run_failed" in _kinds(job)


# --- what hangs on the end -------------------------------------------------------------------------------------------


def test_secrets_are_gone_with_the_jobs_end(job: Job, told: Told) -> None:
    JobSecret.objects.create(job=job, name="HF_TOKEN", sealed=b"sealed")
    _ran(told)
    assert JobSecret.objects.exists()
    observe(told.failed(60))
    assert not JobSecret.objects.exists()


def test_words_of_any_length_and_kind_are_stored(job: Job, told: Told) -> None:
    observe(told.pending("\0" + "x" * 40_000, reason="R" * 300))
    attempt = attempt_of(job)
    assert (len(attempt.cluster_message), len(attempt.cluster_reason)) == (40_000, 120)


def test_case_69_the_end_is_taken_in_after_the_person_has_left_and_the_team_is_closed(
    job: Job, told: Told, team: Team, member: User, lead: User
) -> None:
    """Job, team and names stay as they were at submission, whoever leaves."""
    _ran(told)
    teams.remove_member(actor=lead, team=team, user=member)
    teams.close_team(actor=None, team=team)
    User.objects.filter(pk=member.pk).update(is_active=False)
    observe(told.complete(930))
    job.refresh_from_db()
    assert (job.state, job.team_name, job.submitted_by_name) == (State.SUCCEEDED, "Vision", "member")
    member.delete()
    job.refresh_from_db()
    assert (job.submitted_by_id, job.submitted_by_name, job.team_id) == (None, "member", team.pk)


def test_case_71_times_are_whole_seconds_as_the_cluster_gave_them(
    site: factories.Site, team: Team, member: User
) -> None:
    """A hundred runs of exactly 900 s: nothing is rounded on the way in."""
    for number in range(100):
        one = factories.make_job(team, member, site.gpu, state=State.QUEUED)
        attempt = one.attempts.get()
        story = Told(name=attempt.object_name, namespace=attempt.namespace, job_id=str(one.id))
        story.created()
        story.admitted(10)
        story.pods(ended(pod(f"pod-{number}"), since=30, until=930, code=0))
        observe(story.complete(930))
    spans = [job.ended_at - job.started_at for job in Job.objects.all() if job.ended_at and job.started_at]
    assert spans == [timedelta(seconds=900)] * 100


def test_a_job_that_left_the_model_open_names_the_one_that_it_was_given(job: Job, told: Told) -> None:
    Job.objects.update(gpu_model="")
    observe(told.admitted(10))
    job.refresh_from_db()
    assert job.gpu_model == "NVIDIA H100"
