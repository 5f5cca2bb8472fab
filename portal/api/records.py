"""`/teams/`, `/queues/`, `/usage/`, `/charges/`, `/prices/`: rows that pages show and programs add up."""

from typing import Any, TypeVar

from django.db.models import F, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import View
from portal.api.paging import OldestFirst
from portal.api.serializers import ChargeSerializer, PriceSerializer, TeamSerializer, UsageSerializer, plain
from portal.core.errors import Problem, Refused
from portal.costs.models import ChargeLine
from portal.funds.models import Price
from portal.jobs import selectors as jobs
from portal.jobs.models import Job
from portal.quotas import selectors as quotas
from portal.teams.models import Membership
from portal.teams.selectors import teams_visible_to
from portal.usage.models import Interval

Row = TypeVar("Row", Interval, ChargeLine)

_WHOSE = [
    OpenApiParameter("job", str, description="Only this job's."),
    OpenApiParameter("team", str, description="Only this team's."),
    OpenApiParameter("cursor", str),
    OpenApiParameter("limit", int, description="Rows of a page, at most 1000."),
]


class QuotaSerializer(serializers.Serializer[Any]):
    flavor = serializers.CharField()
    gpu_model = serializers.CharField(allow_blank=True)
    pretended = serializers.BooleanField()
    resource = serializers.CharField()
    nominal = serializers.CharField()


class QueueSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    cohort = serializers.CharField(allow_blank=True)
    stopped = serializers.BooleanField()
    quotas = QuotaSerializer(many=True)


class UsagePageSerializer(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = UsageSerializer(many=True)


class ChargePageSerializer(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = ChargeSerializer(many=True)


class Teams(View):
    @extend_schema(responses=TeamSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The teams that you may look into."""
        roles = dict(Membership.objects.filter(user=self.me()).values_list("team_id", "role"))
        found = list(teams_visible_to(self.me()))
        for team in found:
            team.own_role = roles.get(team.pk)  # type: ignore[attr-defined]
        return Response(TeamSerializer(found, many=True).data)


class Queues(View):
    @extend_schema(parameters=[OpenApiParameter("team", str, required=True)], responses=QueueSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The ClusterQueues that a team may submit to, with their quotas."""
        if not request.query_params.get("team"):
            raise Refused(Problem("team", "Name the team, such as ?team=vision."))
        team = self.team_named(request.query_params["team"])
        queues = quotas.queues_open_to(team).prefetch_related("quotas__flavor")
        return Response(
            [
                {
                    "name": queue.name,
                    "cohort": queue.cohort,
                    "stopped": queue.stopped,
                    "quotas": [
                        {
                            "flavor": quota.flavor.name,
                            "gpu_model": quota.flavor.gpu_model,
                            "pretended": quota.flavor.pretended,
                            "resource": quota.resource,
                            "nominal": plain(quota.nominal),
                        }
                        for quota in queue.quotas.all()
                    ],
                }
                for queue in queues
            ]
        )


class _OfJobs(View):
    """Rows that hang on jobs, behind the jobs' own gate."""

    def narrowed(self, rows: QuerySet[Row], request: Request) -> QuerySet[Row]:
        if request.query_params.get("job"):
            return rows.filter(job=jobs.job_for(self.me(), request.query_params["job"]))
        if request.query_params.get("team"):
            return rows.filter(team=self.team_named(request.query_params["team"]))
        return rows.filter(job__in=Job.objects.visible_to(self.me()))


class Usage(_OfJobs):
    @extend_schema(parameters=_WHOSE, responses=UsagePageSerializer)
    def get(self, request: Request) -> Response:
        """Which pod held which resource for how many whole seconds, by the cluster's clock."""
        pages = OldestFirst()
        rows = pages.paginate_queryset(self.narrowed(Interval.objects.all(), request), request, view=self)
        return pages.get_paginated_response(UsageSerializer(rows, many=True).data)


class Charges(_OfJobs):
    @extend_schema(parameters=_WHOSE, responses=ChargePageSerializer)
    def get(self, request: Request) -> Response:
        """The lines of the ledger."""
        pages = OldestFirst()
        lines = ChargeLine.objects.select_related("interval").order_by(F("started_at"), F("id"))
        rows = pages.paginate_queryset(self.narrowed(lines, request), request, view=self)
        return pages.get_paginated_response(ChargeSerializer(rows, many=True).data)


class Prices(View):
    @extend_schema(responses=PriceSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Every price with the moment from which it holds."""
        return Response(PriceSerializer(Price.objects.all(), many=True).data)
