"""Addresses that the API does not have: a problem document instead of a page."""

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.problems import problem


class NoSuchAddress(APIView):
    authentication_classes = []
    permission_classes = [AllowAny]

    def _answer(self, request: Request) -> Response:
        return problem(404, "The API has no such address. The list is at /api/v1/docs/.")

    get = post = put = patch = delete = extend_schema(exclude=True)(_answer)
