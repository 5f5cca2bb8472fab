"""`/jobs/`: submit, list, read, cancel, run again; their events and attempts."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from portal.api.base import View, idempotency_key
from portal.api.parsing import whole_number
from portal.api.serializers import (
    AttemptSerializer,
    EventSerializer,
    JobDetailSerializer,
    JobSerializer,
    RerunSerializer,
    StreamSerializer,
    SubmitSerializer,
)
from portal.core.clock import now
from portal.core.errors import Problem, Refused
from portal.costs import selectors as costs
from portal.jobs import selectors as jobs
from portal.jobs import services
from portal.jobs.models import Job, JobQuerySet, State
from portal.jobs.specs import JobRequest
from portal.logs import selectors as logs

_KEY = OpenApiParameter(
    "Idempotency-Key", str, OpenApiParameter.HEADER,
    description="A repeat with the same key and body answers with the first job; with another body it answers 409.",
)  # fmt: skip
_REPLAYED = {"Idempotency-Replayed": "true"}


class PreviewSerializer(serializers.Serializer[Any]):
    manifests = serializers.ListField(child=serializers.DictField(), help_text="Exactly what would be created.")
    estimate = serializers.DictField(help_text="Per hour, and up to the time limit.")


class JobPageSerializer(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True, help_text="Older jobs.")
    previous = serializers.URLField(allow_null=True, help_text="Newer jobs.")
    results = JobSerializer(many=True)


def detail(job: Job) -> dict[str, Any]:
    """A job with all that hangs on it, in a fixed number of queries."""
    context = {"attempts": jobs.attempts_of(job), "streams": logs.streams_of(job), "cost": _cost(job)}
    return dict(JobDetailSerializer(job, context=context).data)


def _cost(job: Job) -> dict[str, Any]:
    cost = costs.job_cost(job, now())
    estimate = (job.estimate or {}).get("amount")
    return {
        "currency": cost.currency,
        "estimate": estimate,
        "so_far": None if cost.so_far is None else str(cost.so_far),
        "final": None if cost.final is None else str(cost.final),
        "provisional": cost.provisional,
        "missing": list(cost.missing),
    }


def _request(view: View, data: Any) -> JobRequest:
    """The body of a submission, as the house takes it. Raises `Refused` with every field that is off."""
    form = SubmitSerializer(data=data)
    form.is_valid(raise_exception=True)
    asked = form.validated_data
    return JobRequest(
        team=view.team_named(asked["team"]),
        user=view.me(),
        template=asked["template"],
        version=asked.get("version"),
        values=asked["values"],
        name=asked.get("name") or "",
        queue=asked.get("queue"),
        idempotency_key=idempotency_key(view.request),
    )


class Jobs(View):
    @extend_schema(
        parameters=[
            OpenApiParameter("team", str, description="Only this team's."),
            OpenApiParameter("state", str, description="Only these states, comma-separated.", enum=State.values),
            OpenApiParameter("mine", bool, description="Only one's own."),
            OpenApiParameter("template", str, description="Only this template's, by slug."),
            OpenApiParameter("q", str, description="Part of the job's or of the submitter's name, or the job's id."),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int, description="Rows of a page, at most 200."),
        ],
        responses=JobPageSerializer,
        operation_id="jobs_list",
    )
    def get(self, request: Request) -> Response:
        """Jobs of your teams, newest first. Follow `next` and `previous`; rows that come or go shift nothing."""
        limit = whole_number(request, "limit", default=jobs.PAGE_SIZE, least=1, most=jobs.LARGEST_PAGE)
        found = jobs.page(self._filtered(request), cursor=request.query_params.get("cursor", ""), limit=limit)
        address = request.build_absolute_uri()
        body = {
            "next": replace_query_param(address, "cursor", found.older) if found.older else None,
            "previous": replace_query_param(address, "cursor", found.newer) if found.newer else None,
            "results": JobSerializer(found.jobs, many=True).data,
        }
        return Response(body)

    def _filtered(self, request: Request) -> JobQuerySet:
        query = request.query_params
        states = [state for state in query.get("state", "").split(",") if state]
        unknown = [state for state in states if state not in State.values]
        if unknown:
            known = ", ".join(State.values)
            raise Refused(Problem("state", f"There is no state “{unknown[0][:40]}”. The states are: {known}."))
        return jobs.jobs_of(
            self.me(),
            team=self.team_named(query["team"]) if query.get("team") else None,
            states=states,
            mine=query.get("mine", "").lower() in {"1", "true", "yes"},
            template=query.get("template", ""),
            search=query.get("q", ""),
        )

    @extend_schema(request=SubmitSerializer, parameters=[_KEY], responses={201: JobDetailSerializer})
    def post(self, request: Request) -> Response:
        """Submit a job. Answered once the job is safely stored; the cluster hears of it right after."""
        result = services.submit(_request(self, request.data))
        job = jobs.job_for(self.me(), result.job.id)
        headers = {"Location": request.build_absolute_uri(f"{job.id}/")} | ({} if result.created else _REPLAYED)
        return Response(detail(job), status=status.HTTP_201_CREATED, headers=headers)


class JobPreview(View):
    @extend_schema(request=SubmitSerializer, responses=PreviewSerializer)
    def post(self, request: Request) -> Response:
        """What would be created and cost, without submitting. Refuses for the same reasons as a submission."""
        preview = services.preview(_request(self, request.data))
        return Response({"manifests": preview.manifests, "estimate": preview.estimate.to_json()})


class OneJob(View):
    @extend_schema(responses=JobDetailSerializer)
    def get(self, request: Request, job_id: str) -> Response:
        """A job with its attempts, streams and cost."""
        return Response(detail(jobs.job_for(self.me(), job_id)))


class CancelJob(View):
    @extend_schema(request=None, responses=JobDetailSerializer)
    def post(self, request: Request, job_id: str) -> Response:
        """Cancel what waits, stop what runs. Doing it twice changes nothing."""
        job = jobs.job_for(self.me(), job_id)
        services.cancel(actor=self.me(), job=job)
        return Response(detail(jobs.job_for(self.me(), job.id)))


class RerunJob(View):
    @extend_schema(request=RerunSerializer, parameters=[_KEY], responses={201: JobDetailSerializer})
    def post(self, request: Request, job_id: str) -> Response:
        """Run a job again with the same values; a new job comes of it."""
        form = RerunSerializer(data=request.data or {})
        form.is_valid(raise_exception=True)
        old = jobs.job_for(self.me(), job_id)
        result = services.rerun(
            actor=self.me(), job=old, newest=form.validated_data["newest"], idempotency_key=idempotency_key(request)
        )
        job = jobs.job_for(self.me(), result.job.id)
        return Response(detail(job), status=status.HTTP_201_CREATED, headers={} if result.created else _REPLAYED)


class JobEvents(View):
    @extend_schema(responses=EventSerializer(many=True))
    def get(self, request: Request, job_id: str) -> Response:
        """What happened to a job, oldest first; by whose clock and in whose words."""
        job = jobs.job_for(self.me(), job_id)
        return Response(EventSerializer(jobs.events_of(job), many=True).data)


class JobAttempts(View):
    @extend_schema(responses=AttemptSerializer(many=True))
    def get(self, request: Request, job_id: str) -> Response:
        """Every try with its pods, nodes, times and the reason for its end."""
        job = jobs.job_for(self.me(), job_id)
        return Response(AttemptSerializer(jobs.attempts_of(job), many=True).data)


class JobStreams(View):
    @extend_schema(responses=StreamSerializer(many=True))
    def get(self, request: Request, job_id: str) -> Response:
        """The logs of a job's containers."""
        job = jobs.job_for(self.me(), job_id)
        return Response(StreamSerializer(logs.streams_of(job), many=True).data)
