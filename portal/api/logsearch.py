"""`/streams/<id>/search/`: looking through a whole log on the server."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.base import View
from portal.api.parsing import choice, whole_number
from portal.core.errors import Problem, Refused
from portal.logs import search
from portal.logs import selectors as logs
from portal.logs.policy.errors import ERRORS
from portal.logs.policy.patterns import LONGEST, BadPattern, Pattern, pattern_of

_LAST = 10**15

# The word `from` is a keyword, so the class is made by name.
FoundSerializer: type[serializers.Serializer[Any]] = type(
    "FoundSerializer",
    (serializers.Serializer,),
    {
        "from": serializers.IntegerField(help_text="The line that was begun with."),
        "next": serializers.IntegerField(allow_null=True, help_text="The line to go on from; null: to the end."),
        "hits": serializers.ListField(child=serializers.IntegerField(), help_text="Numbers of lines, as met."),
        "count": serializers.IntegerField(help_text="How many lines hit in what was looked through."),
        "lines": serializers.IntegerField(help_text="How many lines the log had."),
        "marks": serializers.DictField(
            child=serializers.ListField(child=serializers.ListField(child=serializers.IntegerField())),
            help_text="With `to`: by line number, [begin, end) of each hit in characters of what a screen shows.",
        ),
    },
)


class StreamSearch(View):
    @extend_schema(
        parameters=[
            OpenApiParameter("q", str, description=f"What to look for, at most {LONGEST} characters."),
            OpenApiParameter("regex", str, enum=["yes", "no"], description="`q` is a regular expression (RE2)."),
            OpenApiParameter("case", str, enum=["yes", "no"], description="Whether capitals count; `no` if left out."),
            OpenApiParameter(
                "errors", str, enum=["yes", "no"], description="Instead of `q`: tracebacks, CUDA, NCCL, out of memory."
            ),
            OpenApiParameter("from", int, description="Line to begin with; the first, or backwards the last."),
            OpenApiParameter("direction", str, enum=["forward", "backward"]),
            OpenApiParameter("limit", int, description=f"Hits at most: 0 (count only) to {search.MOST_HITS}."),
            OpenApiParameter("to", int, description="Asks for `marks` of the lines [from, to) instead."),
        ],
        responses=FoundSerializer,
    )
    def get(self, request: Request, stream_id: str) -> Response:
        """Look through the whole log, half a second at a time: ask for `next` until it is null."""
        stream = logs.stream_for(self.me(), stream_id)
        pattern = _pattern(request)
        backward = choice(request, "direction", ("forward", "backward")) == "backward"
        first = whole_number(request, "from", default=_LAST if backward else 1, least=1, most=_LAST)
        limit = whole_number(request, "limit", default=1000, least=0, most=search.MOST_HITS)
        if "to" in request.query_params:
            end = whole_number(request, "to", default=_LAST, least=1, most=_LAST)
            marks = search.marks(stream, pattern, first=first, end=end)
            return Response(_found(search.Found(stream.next_line - 1, list(marks), len(marks)), first, marks))
        found = search.search(
            stream, pattern, first=first, direction="backward" if backward else "forward", limit=limit
        )
        return Response(_found(found, first, {}))


def _pattern(request: Request) -> Pattern:
    """What is looked for. Raises `Refused`, naming what is wrong with it."""
    if choice(request, "errors", ("no", "yes")) == "yes":
        return ERRORS
    regex = choice(request, "regex", ("no", "yes")) == "yes"
    case = choice(request, "case", ("no", "yes")) == "yes"
    try:
        return pattern_of(request.query_params.get("q", ""), regex=regex, case=case)
    except BadPattern as error:
        raise Refused(Problem("q", str(error), "invalid")) from None


def _found(found: search.Found, first: int, marks: dict[int, list[tuple[int, int]]]) -> dict[str, Any]:
    return {
        "from": first,
        "next": found.next,
        "hits": found.hits,
        "count": found.count,
        "lines": found.lines,
        "marks": {str(n): spans for n, spans in marks.items()},
    }
