"""What the containers said."""

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _

from portal.jobs.models import Job
from portal.teams.models import Team


class Source(models.TextChoices):
    FOLLOWER = "follower", _("The log endpoint of the cluster")
    COLLECTOR = "collector", _("The collector on the node")


class Cause(models.TextChoices):
    """Why lines are missing. The words for people are `policy.gap_words`'s."""

    ROTATED = "rotated", _("Rotated away while nobody was reading")
    SKIPPED = "skipped", _("Left out by the log endpoint at a rotation")
    DELETED = "deleted", _("The pod was deleted before its log was read to the end")
    FULL = "full", _("More than the job may store")


class Stream(models.Model):
    """The log of one container of one pod in one life. Its lines are numbered from 1 by Beamtime."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="streams")
    attempt_number = models.PositiveIntegerField()
    pod_uid = models.CharField(max_length=64)
    pod_name = models.CharField(max_length=253)
    pod_index = models.PositiveIntegerField(default=0)
    container = models.CharField(max_length=63)
    restart = models.PositiveIntegerField(default=0)
    # The cursor: number of the next line, and bytes of text stored so far.
    next_line = models.PositiveBigIntegerField(default=1)
    bytes = models.PositiveBigIntegerField(default=0)
    # Time stamp of the last stored record, nanoseconds since the epoch: where reading is taken up again.
    last_time_ns = models.BigIntegerField(null=True, blank=True)
    # Text of a line that has not ended yet, for the live view only; what a carriage return has overwritten is cut.
    open_text = models.TextField(blank=True)
    # Set when the container has ended and everything it said is stored.
    completed_at = models.DateTimeField(null=True, blank=True)
    # Who may add lines: the portal's own follower, or the collector on the node (README.md).
    source = models.CharField(max_length=16, choices=Source.choices, default=Source.FOLLOWER)
    # Everything before this line lies in segments, everything from it on in chunks.
    sealed_line = models.PositiveBigIntegerField(default=1)
    # Bytes of text in segments.
    sealed_bytes = models.PositiveBigIntegerField(default=0)
    # Set once all of a complete stream lies in segments; the digest is of its whole text, in hexadecimal.
    sealed_at = models.DateTimeField(null=True, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    # Set when the job has stored as much as it may: nothing that comes later is kept, and a gap counts it.
    full_at = models.DateTimeField(null=True, blank=True)
    # Set when the text was given up at the end of the team's retention; number, bytes and digest stay.
    expired_at = models.DateTimeField(null=True, blank=True)
    # Set once the last of an expired text is deleted.
    purged_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["job", "attempt_number", "pod_index", "created_at", "restart"]
        constraints = [models.UniqueConstraint(fields=["pod_uid", "container", "restart"], name="stream_once")]
        # Each as small as what is still to be done, however many streams there have ever been.
        indexes = [
            models.Index(
                fields=["created_at"],
                condition=models.Q(sealed_at__isnull=True, expired_at__isnull=True),
                name="streams_unsealed",
            ),
            models.Index(fields=["job"], condition=models.Q(expired_at__isnull=True), name="streams_kept"),
            models.Index(
                fields=["expired_at"],
                condition=models.Q(expired_at__isnull=False, purged_at__isnull=True),
                name="streams_to_purge",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pod_name}/{self.container}"


class Chunk(models.Model):
    """Consecutive lines of a stream: their text byte for byte, and a time for each."""

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="chunks")
    first_line = models.PositiveBigIntegerField()
    lines = models.PositiveIntegerField()
    first_byte = models.PositiveBigIntegerField()
    # The lines' bytes as written, line feeds included; the very last line of a stream may lack its own.
    data = models.BinaryField()
    # A little-endian int64 for each line: nanoseconds since the epoch.
    times = models.BinaryField()

    class Meta:
        ordering = ["stream", "first_line"]
        constraints = [models.UniqueConstraint(fields=["stream", "first_line"], name="chunk_once")]

    def __str__(self) -> str:
        return f"lines {self.first_line} to {self.first_line + self.lines - 1}"


class Segment(models.Model):
    """Many consecutive lines of a stream, compressed and never changed again (`store/blocks.py`)."""

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="segments")
    first_line = models.PositiveBigIntegerField()
    lines = models.PositiveIntegerField()
    first_byte = models.PositiveBigIntegerField()
    # Of the text before compression.
    bytes = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    # Where each block begins: see `store/blocks.py`.
    index = models.BinaryField()
    # The blocks; null when they lie in the object store under `key`.
    data = models.BinaryField(null=True)
    key = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["stream", "first_line"]
        constraints = [models.UniqueConstraint(fields=["stream", "first_line"], name="segment_once")]

    def __str__(self) -> str:
        return f"lines {self.first_line} to {self.first_line + self.lines - 1}"


class Gap(models.Model):
    """Lines that were written and could not be had: before which line of ours, between which times, and why."""

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="gaps")
    # The first line behind the gap; `next_line` of the stream if nothing has followed yet.
    before_line = models.PositiveBigIntegerField()
    cause = models.CharField(max_length=16, choices=Cause.choices)
    # Time of the last record before it and of the first behind it, nanoseconds since the epoch; None: not known.
    after_ns = models.BigIntegerField(null=True, blank=True)
    until_ns = models.BigIntegerField(null=True, blank=True)
    # How many are missing, where that is known.
    lines = models.PositiveBigIntegerField(null=True, blank=True)
    bytes = models.PositiveBigIntegerField(null=True, blank=True)
    noticed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["stream", "before_line"]
        constraints = [models.UniqueConstraint(fields=["stream", "before_line", "cause"], name="gap_once")]

    def __str__(self) -> str:
        return f"before line {self.before_line}: {self.cause}"


class Retention(models.Model):
    """How long a team keeps the logs of its jobs. Without one, the site's rule holds."""

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="log_retention")
    days = models.PositiveIntegerField(
        _("days"), help_text=_("Days after a job's end for which its logs are kept. 0: for ever.")
    )

    class Meta:
        verbose_name = _("retention of logs")
        verbose_name_plural = _("retention of logs")

    def __str__(self) -> str:
        return f"{self.team}: {self.days} days" if self.days else f"{self.team}: for ever"


class Intake(models.Model):
    """What is known of the files that a collector delivers for a stream: see `policy/collected.py`."""

    stream = models.OneToOneField(Stream, on_delete=models.CASCADE, primary_key=True, related_name="intake")
    spans = models.JSONField(default=list)
    open_lines = models.JSONField(default=dict)
    # Time of the last record that the follower had stored when the collector took over; None: it had stored none.
    follower_until_ns = models.BigIntegerField(null=True, blank=True)
    # See `policy/settling.py`: when the newest of the numbered records was read; which process of the collector sends,
    # and when its first delivery came. Nanoseconds since the epoch.
    grown_ns = models.BigIntegerField(default=0)
    sender = models.CharField(max_length=64, blank=True)
    begun_ns = models.BigIntegerField(default=0)
    # When it was looked at last without a line coming of it.
    idle_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"intake of {self.stream_id}"


class Parcel(models.Model):
    """Records that a collector has delivered and that have no number yet (`policy/parcels.py`)."""

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="parcels")
    # Of the data: the same delivery twice is one parcel.
    digest = models.CharField(max_length=64)
    data = models.BinaryField()
    # Nanoseconds since the epoch: when it came, by the portal's clock or by the node's if that is ahead; when the
    # collector read the newest of its records; and the earliest time of them.
    came_ns = models.BigIntegerField(default=0)
    read_ns = models.BigIntegerField(default=0)
    first_ns = models.BigIntegerField(default=0)
    # Which process of the collector has sent it.
    sender = models.CharField(max_length=64, blank=True)

    class Meta:
        # What is older comes first, whenever it came.
        ordering = ["stream", "first_ns", "pk"]
        constraints = [models.UniqueConstraint(fields=["stream", "digest"], name="parcel_once")]

    def __str__(self) -> str:
        return f"{len(self.data)} bytes of {self.stream_id}"
