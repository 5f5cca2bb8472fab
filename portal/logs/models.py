"""What the containers said."""

import uuid

from django.db import models

from portal.jobs.models import Job


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
    # Why the end could not be had, in a sentence; "" while all is well.
    trouble = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["job", "attempt_number", "pod_index", "created_at", "restart"]
        constraints = [models.UniqueConstraint(fields=["pod_uid", "container", "restart"], name="stream_once")]

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
