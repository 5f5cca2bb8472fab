"""What a researcher asked for, and what became of it. What may follow what stands in STATES.md."""

import uuid
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import TruncSecond
from django.utils.translation import gettext_lazy as _

from portal.catalog.models import TemplateVersion
from portal.quotas.models import LocalQueue
from portal.teams.models import Team, User
from portal.teams.selectors import teams_visible_to


class State(models.TextChoices):
    """What a person needs to know. The transitions stand in STATES.md and in `policy.TRANSITIONS`."""

    SUBMITTED = "submitted", _("Submitted")
    QUEUED = "queued", _("Queued")
    STARTING = "starting", _("Starting")
    RUNNING = "running", _("Running")
    CANCELLING = "cancelling", _("Cancelling")
    SUCCEEDED = "succeeded", _("Succeeded")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")
    REJECTED = "rejected", _("Rejected")
    LOST = "lost", _("Lost")


TERMINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED, State.REJECTED, State.LOST})
ACTIVE = frozenset(State) - TERMINAL


class JobQuerySet(models.QuerySet["Job"]):
    def visible_to(self, user: User, *, team: Team | None = None) -> Self:
        """The jobs a person may see: those of one's teams, or all for the site's admin and auditor; `team` narrows it.

        The one gate in front of everything that carries job data: pages, API, sockets, downloads.
        """
        teams = teams_visible_to(user)
        if team is not None:
            # Asked once, not of every job: otherwise no index on the team gives the order or the counts.
            return self.filter(models.Exists(teams.filter(pk=team.pk)), team=team)
        if user.is_active and (user.is_superuser or user.is_auditor):
            return self
        return self.filter(team__in=teams)


class Job(models.Model):
    """One request of a researcher. Carries team and names from submission, so that nobody's leaving changes it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="jobs")
    team_name = models.CharField(max_length=120)
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="jobs"
    )
    submitted_by_name = models.CharField(max_length=150)
    template_version = models.ForeignKey(TemplateVersion, on_delete=models.PROTECT, related_name="jobs")
    queue = models.ForeignKey(LocalQueue, on_delete=models.PROTECT, related_name="jobs")
    # A display text in any language; never an object name.
    name = models.CharField(max_length=200)
    # What was filled in, without secrets.
    values = models.JSONField(default=dict)
    # clusters.specs.WorkSpec, as rendered at submission.
    work = models.JSONField()
    # Where pods of the chosen flavor are sent; frozen with the job.
    node_selector = models.JSONField(default=dict)
    gpu_model = models.CharField(max_length=80, blank=True)
    gpu_resource = models.CharField(max_length=80, default="nvidia.com/gpu")

    state = models.CharField(max_length=12, choices=State.choices, default=State.SUBMITTED)
    # A stable code (policy.Reason) and the sentence for people; the cluster's own words stand with the attempt.
    reason_code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    # Grows with every change, so that a page knows whether it is current.
    revision = models.PositiveIntegerField(default=1)

    submitted_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by_name = models.CharField(max_length=150, blank=True)

    # funds.specs.Estimate as JSON, as shown before the click; its amount is null when something had no price.
    estimate = models.JSONField(null=True, blank=True)
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)
    # Keyed digest of the request under that key; keyed, because a request may hold a secret that could be guessed.
    request_digest = models.CharField(max_length=64, blank=True)
    rerun_of = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="reruns")

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ["-submitted_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["submitted_by", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="job_once_per_idempotency_key",
            ),
        ]
        indexes = [
            models.Index(fields=["team", "-submitted_at", "-id"], name="jobs_of_team"),
            models.Index(fields=["team", "state", "-submitted_at", "-id"], name="jobs_of_team_by_state"),
            # A tenth of the other's size, for the counts above the list, which read all of it.
            models.Index(fields=["team", "state"], name="jobs_of_team_in_state"),
            models.Index(fields=["submitted_by", "-submitted_at"], name="jobs_of_person"),
            # Going on (no end yet) or ended of late: what a person is concerned with.
            models.Index(fields=["submitted_by", "ended_at"], name="jobs_of_person_by_end"),
            models.Index(fields=["-submitted_at", "-id"], name="jobs_by_time"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL


class JobSecret(models.Model):
    """A secret value of a job, encrypted. Write-only: nothing but dispatch ever opens it; gone with the job's end."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="secrets")
    # The environment variable that carries it.
    name = models.CharField(max_length=200)
    sealed = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "name"], name="job_secret_once")]

    def __str__(self) -> str:
        return self.name


class Attempt(models.Model):
    """One try at a job: one object in the cluster, under a name fixed by job and attempt."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=State.choices, default=State.SUBMITTED)
    reason_code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    # Kueue's or Kubernetes' own words, stored when first seen.
    cluster_reason = models.CharField(max_length=120, blank=True)
    cluster_message = models.TextField(blank=True)

    namespace = models.CharField(max_length=63)
    object_name = models.CharField(max_length=63, unique=True)
    object_uid = models.CharField(max_length=64, blank=True)
    spec_digest = models.CharField(max_length=64, blank=True)
    flavor = models.CharField(max_length=63, blank=True)
    nodes = models.JSONField(default=list, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    # Grows with every change of what became of it: the guard of two writers who read the same row.
    revision = models.PositiveIntegerField(default=1)

    # The cluster's times. `admitted_at` and `started_at` are of the present stay; an eviction clears them.
    created_at = models.DateTimeField(null=True, blank=True)
    admitted_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    # The last time that Kueue took its quota back and put it into the queue again.
    requeued_at = models.DateTimeField(null=True, blank=True)

    # Dispatch: what is due is claimed by a conditional UPDATE with a fresh token and a lease. `due_at` is null when the
    # cluster has what it shall have of this attempt: its object, or nothing.
    due_at = models.DateTimeField(null=True, blank=True)
    claim_token = models.UUIDField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True)
    # Set once the object is known to be gone from the cluster, or never to have been there.
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    # Set by the watcher once everything the object could tell is stored: logs, pods, intervals. Then it may be deleted.
    stored_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["job", "number"]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="attempt_once"),
            # The row is the promise: what still has to be made or taken away can never be forgotten.
            models.CheckConstraint(
                condition=Q(due_at__isnull=False) | ~Q(state__in=["submitted", "cancelling"]), name="attempt_promised"
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="attempts_due"),
            models.Index(
                # Not by a list of states, which SQLite would never take for the one of a query.
                fields=["state"],
                condition=Q(ended_at__isnull=True),
                name="attempts_in_cluster",
            ),
            models.Index(
                fields=["ended_at"], condition=Q(withdrawn_at__isnull=True, due_at__isnull=True), name="attempts_kept"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} attempt {self.number}"


class Pod(models.Model):
    """One pod of an attempt, as last seen; stays when the pod is gone."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="pods")
    uid = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=253)
    index = models.PositiveIntegerField(default=0)
    phase = models.CharField(max_length=20)
    node = models.CharField(max_length=253, blank=True)
    scheduled_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    reason_code = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    cluster_reason = models.CharField(max_length=120, blank=True)
    cluster_message = models.TextField(blank=True)
    gone = models.BooleanField(default=False)
    # It belongs to a stay that Kueue has ended; what it did says nothing about the present one.
    past = models.BooleanField(default=False)

    class Meta:
        ordering = ["attempt", "index", "id"]

    def __str__(self) -> str:
        return self.name


class Event(models.Model):
    """Something that happened to a job, once. `key` makes a repeated observation a no-op."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="events")
    attempt_number = models.PositiveIntegerField(null=True, blank=True)
    at = models.DateTimeField()
    # "beamtime", "kueue" or "kubernetes": whose clock and words these are.
    source = models.CharField(max_length=12)
    kind = models.CharField(max_length=40)
    message = models.TextField(blank=True)
    key = models.CharField(max_length=64)

    class Meta:
        # Kubernetes writes whole seconds and Beamtime finer ones, so within a second the order of hearing decides.
        ordering = [TruncSecond("at"), "id"]
        constraints = [models.UniqueConstraint(fields=["job", "key"], name="event_once")]

    def __str__(self) -> str:
        return f"{self.at:%H:%M:%S} {self.kind}"
