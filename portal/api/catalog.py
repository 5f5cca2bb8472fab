"""`/templates/`: what can be submitted, and the schema of its values."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import View
from portal.api.parsing import whole_number
from portal.catalog import selectors as catalog
from portal.catalog.models import TemplateVersion
from portal.core.errors import Missing, Problem, Refused
from portal.jobs import selectors as jobs


class TemplateSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField(source="template.slug")
    title = serializers.CharField(source="template.title")
    summary = serializers.CharField(source="template.summary")
    version = serializers.IntegerField(source="number")
    state = serializers.CharField()
    message = serializers.CharField(help_text="Why it is deprecated, and what to take instead.")
    published_at = serializers.DateTimeField()


class TemplateDetailSerializer(TemplateSerializer):
    definition = serializers.DictField(help_text="Parameters and work, as published.")


class Templates(View):
    @extend_schema(responses=TemplateSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The newest version of each template that can be submitted."""
        return Response(TemplateSerializer(list(catalog.offered()), many=True).data)


def _version(slug: str, request: Request) -> TemplateVersion:
    number = whole_number(request, "version", default=0, least=1, most=1_000_000) or None
    try:
        return catalog.version_for(slug, number)
    except Refused as error:
        if any(problem.field == "template" for problem in error.problems):
            raise Missing from error
        raise


class OneTemplate(View):
    @extend_schema(parameters=[OpenApiParameter("version", int)], responses=TemplateDetailSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """A template's newest version, or the one asked for."""
        return Response(TemplateDetailSerializer(_version(slug, request)).data)


class TemplateSchema(View):
    @extend_schema(
        parameters=[OpenApiParameter("team", str, required=True), OpenApiParameter("version", int)],
        responses={200: {"type": "object", "description": "JSON Schema, draft 2020-12, of `values`."}},
    )
    def get(self, request: Request, slug: str) -> Response:
        """The JSON Schema of `values` for a team: its flavors and limits are in it."""
        if not request.query_params.get("team"):
            raise Refused(Problem("team", "Name the team, such as ?team=vision: flavors and limits depend on it."))
        team = self.team_named(request.query_params["team"])
        schema: dict[str, Any] = jobs.values_schema(team, _version(slug, request))
        return Response(schema)
