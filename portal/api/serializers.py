"""Shapes of requests and answers. They translate; they decide nothing."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.reverse import reverse

from portal.costs.models import ChargeLine
from portal.funds.models import Price
from portal.jobs.models import Attempt, Event, Job, Pod
from portal.logs import selectors as logs
from portal.logs.models import Gap, Stream
from portal.logs.policy import gap_words
from portal.teams.models import Team
from portal.usage.models import Interval

_MOST_UNKNOWN, _LONGEST_UNKNOWN = 20, 60


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it does not know, because a mistyped field must not be silently ignored."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(_printable(str(key)) for key in data if key not in self.fields)[:_MOST_UNKNOWN]
            if unknown:
                known = ", ".join(self.fields)
                raise serializers.ValidationError(
                    {name: [f"There is no field “{name}” here. The fields are: {known}."] for name in unknown}
                )
        return super().to_internal_value(data)


class SubmitSerializer(StrictSerializer):
    """What `POST /jobs/` takes."""

    team = serializers.CharField(help_text="Slug of a team of yours.")
    template = serializers.CharField(help_text="Slug of a template.")
    version = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=1_000_000, help_text="Left out: the newest published."
    )
    # Length and characters are judged with all other values, in one answer.
    name = serializers.CharField(required=False, allow_blank=True, allow_null=True, trim_whitespace=False)
    queue = serializers.CharField(required=False, allow_null=True, help_text="Left out: the template's own queue.")
    values = serializers.DictField(required=False, default=dict, help_text="By parameter; see the template's schema.")


class RerunSerializer(StrictSerializer):
    newest = serializers.BooleanField(default=False, help_text="Take the newest version instead of the job's own.")


class TeamSerializer(serializers.ModelSerializer[Team]):
    role = serializers.SerializerMethodField(help_text="Your role in it, or null.")

    class Meta:
        model = Team
        fields = ["slug", "name", "role"]

    def get_role(self, team: Team) -> str | None:
        role: str | None = getattr(team, "own_role", None)
        return role


class PodSerializer(serializers.ModelSerializer[Pod]):
    class Meta:
        model = Pod
        fields = [
            "uid", "name", "index", "phase", "node", "scheduled_at", "started_at", "ended_at", "exit_code",
            "reason_code", "reason", "cluster_reason", "cluster_message", "gone",
        ]  # fmt: skip


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    pods = PodSerializer(many=True)

    class Meta:
        model = Attempt
        fields = [
            "number", "state", "reason_code", "reason", "cluster_reason", "cluster_message", "namespace",
            "object_name", "object_uid", "flavor", "nodes", "exit_code", "created_at", "admitted_at", "started_at",
            "ended_at", "tries", "last_error", "pods",
        ]  # fmt: skip


class EventSerializer(serializers.ModelSerializer[Event]):
    attempt = serializers.IntegerField(source="attempt_number", allow_null=True)

    class Meta:
        model = Event
        fields = ["at", "attempt", "source", "kind", "message"]


class GapSerializer(serializers.ModelSerializer[Gap]):
    before = serializers.IntegerField(source="before_line", help_text="The first line behind what is missing.")
    words = serializers.SerializerMethodField(help_text="Which lines are missing, and why.")

    class Meta:
        model = Gap
        fields = ["before", "cause", "after_ns", "until_ns", "lines", "bytes", "words"]

    def get_words(self, gap: Gap) -> str:
        return gap_words(gap)


class StreamSerializer(serializers.ModelSerializer[Stream]):
    attempt = serializers.IntegerField(source="attempt_number")
    pod = serializers.CharField(source="pod_name")
    index = serializers.IntegerField(source="pod_index")
    lines = serializers.SerializerMethodField(help_text="Lines stored so far; the last has this number.")
    complete = serializers.SerializerMethodField(help_text="Nothing will follow.")
    trouble = serializers.SerializerMethodField(help_text="What is missing, in sentences; empty while all is well.")
    gaps = GapSerializer(many=True)
    expires_at = serializers.SerializerMethodField(
        help_text="When its text is deleted by the team's rule; null: never."
    )
    expired_at = serializers.DateTimeField(help_text="When its text was deleted; number, bytes and digest stay.")

    class Meta:
        model = Stream
        fields = ["id", "attempt", "pod", "pod_uid", "index", "container", "restart", "source", "lines", "bytes",
                  "complete", "sha256", "trouble", "gaps", "expires_at", "expired_at"]  # fmt: skip

    def get_expires_at(self, stream: Stream) -> datetime | None:
        return logs.expires_at(stream)

    def get_lines(self, stream: Stream) -> int:
        return stream.next_line - 1

    def get_complete(self, stream: Stream) -> bool:
        return stream.completed_at is not None

    def get_trouble(self, stream: Stream) -> str:
        return logs.trouble_of(stream)


class LineSerializer(serializers.Serializer[Any]):
    n = serializers.IntegerField(help_text="Number of the line, from 1.")
    t = serializers.CharField(help_text="When it was written, RFC 3339 with nanoseconds.")
    text = serializers.CharField(help_text="Without its line feed; bytes that are no UTF-8 become U+FFFD.")


# `from` is a Python keyword, so the class is built by its fields' names.
LinesSerializer: type[serializers.Serializer[Any]] = type(
    "LinesSerializer",
    (serializers.Serializer,),
    {
        "from": serializers.IntegerField(help_text="First line of the range."),
        "to": serializers.IntegerField(help_text="The line after the range: ask for this one next."),
        "lines": LineSerializer(many=True),
        "complete": serializers.BooleanField(help_text="The range reaches the end, and nothing will follow."),
    },
)


class CostSerializer(serializers.Serializer[Any]):
    currency = serializers.CharField()
    estimate = serializers.CharField(allow_null=True, help_text="Up to the time limit, as told before submission.")
    so_far = serializers.CharField(allow_null=True, help_text="At this moment; equal to final once all is rated.")
    final = serializers.CharField(allow_null=True, help_text="Null until the job has ended and all is rated.")
    provisional = serializers.BooleanField()
    missing = serializers.ListField(child=serializers.CharField(), help_text="What has no price, if anything.")


class ResourcesSerializer(serializers.Serializer[Any]):
    gpus = serializers.IntegerField()
    flavor = serializers.CharField(allow_blank=True)
    cores = serializers.FloatField()
    memory_gib = serializers.FloatField()
    runs = serializers.IntegerField()
    time_limit_seconds = serializers.IntegerField(allow_null=True)


class _Rows(serializers.ListSerializer[Any]):
    """Jobs as `JobSerializer` says them, by hand: asking each of its fields takes a sixth of the time of a list."""

    def to_representation(self, data: Any) -> list[dict[str, Any]]:
        moment = serializers.DateTimeField().to_representation
        return [
            {
                "id": str(job.pk),
                "state": str(job.state),
                "reason_code": job.reason_code,
                "reason": job.reason,
                "name": job.name,
                "team": job.team.slug,
                "template": job.template_version.template.slug,
                "version": job.template_version.number,
                "queue": job.queue.cluster_queue.name,
                "submitted_by": job.submitted_by_name,
                "submitted_at": moment(job.submitted_at),
                "started_at": job.started_at and moment(job.started_at),
                "ended_at": job.ended_at and moment(job.ended_at),
                "cancel_requested_at": job.cancel_requested_at and moment(job.cancel_requested_at),
                "rerun_of": job.rerun_of_id,
                "revision": job.revision,
                "url": _page_of(job),
            }
            for job in data
        ]


def _page_of(job: Job) -> str:
    return settings.BEAMTIME_PUBLIC_URL + reverse("web:job", args=[job.team.slug, job.id])


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job in a list."""

    team = serializers.CharField(source="team.slug")
    template = serializers.CharField(source="template_version.template.slug")
    version = serializers.IntegerField(source="template_version.number")
    queue = serializers.CharField(source="queue.cluster_queue.name")
    submitted_by = serializers.CharField(source="submitted_by_name")
    url = serializers.SerializerMethodField(help_text="The job's page.")

    class Meta:
        model = Job
        list_serializer_class = _Rows
        fields = [
            "id", "state", "reason_code", "reason", "name", "team", "template", "version", "queue", "submitted_by",
            "submitted_at", "started_at", "ended_at", "cancel_requested_at", "rerun_of", "revision", "url",
        ]  # fmt: skip

    def get_url(self, job: Job) -> str:
        return _page_of(job)


class JobDetailSerializer(JobSerializer):
    """A job with everything that hangs on it. The view hands `attempts`, `streams` and `cost` in by context."""

    resources = serializers.SerializerMethodField()
    attempts = serializers.SerializerMethodField()
    streams = serializers.SerializerMethodField()
    cost = serializers.SerializerMethodField()

    class Meta(JobSerializer.Meta):
        fields = [*JobSerializer.Meta.fields, "values", "resources", "attempts", "streams", "cost"]

    @extend_schema_field(ResourcesSerializer)
    def get_resources(self, job: Job) -> "dict[str, Any]":
        work = job.work
        return {
            "gpus": work["gpus"],
            "flavor": work["flavor"],
            "cores": work["cpu_millicores"] / 1000,
            "memory_gib": work["memory_mib"] / 1024,
            "runs": work["runs"],
            "time_limit_seconds": work["time_limit_seconds"],
        }

    @extend_schema_field(AttemptSerializer(many=True))
    def get_attempts(self, job: Job) -> "list[dict[str, Any]]":
        return list(AttemptSerializer(self.context["attempts"], many=True).data)

    @extend_schema_field(StreamSerializer(many=True))
    def get_streams(self, job: Job) -> "list[dict[str, Any]]":
        return list(StreamSerializer(self.context["streams"], many=True).data)

    @extend_schema_field(CostSerializer)
    def get_cost(self, job: Job) -> "dict[str, Any]":
        return dict(CostSerializer(self.context["cost"]).data)


class UsageSerializer(serializers.ModelSerializer[Interval]):
    attempt = serializers.IntegerField(source="attempt_number")
    pod = serializers.CharField(source="pod_name")
    units = serializers.SerializerMethodField(help_text="GPUs, cores or GiB.")
    seconds = serializers.SerializerMethodField(help_text="Whole seconds; null while the pod holds the resource.")

    class Meta:
        model = Interval
        fields = ["job", "attempt", "pod", "pod_uid", "node", "resource", "flavor", "gpu_model", "units", "seconds",
                  "started_at", "ended_at", "estimated"]  # fmt: skip

    def get_units(self, interval: Interval) -> float:
        return float(interval.units)

    def get_seconds(self, interval: Interval) -> int | None:
        if interval.ended_at is None:
            return None
        return int((interval.ended_at - interval.started_at).total_seconds())


class ChargeSerializer(serializers.ModelSerializer[ChargeLine]):
    resource = serializers.CharField(source="interval.resource")
    gpu_model = serializers.CharField(source="interval.gpu_model")
    pod_uid = serializers.CharField(source="interval.pod_uid")
    raw = serializers.CharField(source="exact", help_text="seconds × units × price, exact; divide by 3600 for money.")

    class Meta:
        model = ChargeLine
        fields = ["id", "job", "pod_uid", "resource", "gpu_model", "started_at", "ended_at", "seconds", "units",
                  "price_per_hour", "currency", "raw", "estimated"]  # fmt: skip


class PriceSerializer(serializers.ModelSerializer[Price]):
    amount = serializers.SerializerMethodField(help_text="Per unit and hour, as entered.")

    class Meta:
        model = Price
        fields = ["resource", "gpu_model", "amount", "currency", "valid_from"]

    def get_amount(self, price: Price) -> str:
        return plain(price.amount)


def _printable(name: str) -> str:
    """A name of somebody else's making, fit for an answer: JSON may hold halves of surrogate pairs, UTF-8 may not."""
    short = name if len(name) <= _LONGEST_UNKNOWN else name[:_LONGEST_UNKNOWN] + "…"
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in short)


def plain(number: Decimal) -> str:
    """A decimal without exponent and without idle zeros."""
    return f"{number.normalize():f}"
