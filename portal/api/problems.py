"""Errors as problem details (RFC 9457): what is wrong, in which field, and what to do."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, TooManyFieldsSent
from django.db import OperationalError
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from portal.core.errors import Conflicting, Corrupt, Forbidden, Gone, Missing, Problem, Refused, Unavailable

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
# A commit may have been its last deed: so nobody is told that nothing was done.
BUSY = "The database does not answer now, or has too much to do. Ask for the thing's state before you repeat this."
NOT_FOUND = "This does not exist, or it is not open to you."
_TITLES = {
    400: "The request cannot be read",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "In conflict with what was done before",
    410: "Expired",
    413: "Too large",
    415: "Unsupported media type",
    422: "Refused",
    429: "Too many requests",
    500: "Damaged",
    503: "Not reachable now",
}


def problem(
    http: int,
    detail: str,
    problems: tuple[Problem, ...] = (),
    headers: Mapping[str, str] | None = None,
    **members: str,
) -> Response:
    """One problem document. `errors` holds every field that is wrong, with its path; `members` go beside it."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": _TITLES.get(http, "Error"),
        "status": http,
        "detail": detail,
        **members,
    }
    if problems:
        body["errors"] = [{"field": p.field, "message": p.message, "code": p.code} for p in problems]
    return Response(body, status=http, headers=dict(headers or {}), content_type=MEDIA_TYPE)


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's exception handler: the house's errors and the framework's in one shape."""
    response = _translate(error)
    if response is not None:
        set_rollback()
    return response


def _translate(error: Exception) -> Response | None:
    match error:
        case Refused():
            return problem(status.HTTP_422_UNPROCESSABLE_ENTITY, str(error), error.problems)
        case Conflicting():
            return problem(status.HTTP_409_CONFLICT, str(error))
        case Gone():
            return problem(status.HTTP_410_GONE, str(error))
        case Unavailable():
            return problem(status.HTTP_503_SERVICE_UNAVAILABLE, str(error), headers={"Retry-After": "10"})
        case OperationalError():
            logger.warning("api: the database does not answer (%s)", error)
            return problem(status.HTTP_503_SERVICE_UNAVAILABLE, BUSY, headers={"Retry-After": "10"})
        case Corrupt():
            # Not what asking again could mend: `code` tells it from a failure of the server's.
            return problem(status.HTTP_500_INTERNAL_SERVER_ERROR, str(error), code="damaged")
        case Missing() | Http404():
            return problem(status.HTTP_404_NOT_FOUND, NOT_FOUND)
        case TooManyFieldsSent():
            return problem(status.HTTP_400_BAD_REQUEST, "The address has too many parameters. Send fewer.")
        case Forbidden() | PermissionDenied():
            return problem(status.HTTP_403_FORBIDDEN, str(error) or "You may not do this.")
        case exceptions.ValidationError():
            return _translate(Refused(list(_fields(error.detail))))
        case exceptions.UnsupportedMediaType():
            return problem(error.status_code, f"{error.detail} Send JSON with Content-Type: application/json.")
        case exceptions.APIException():
            headers: dict[str, str] = {}
            if getattr(error, "auth_header", None):
                headers["WWW-Authenticate"] = error.auth_header  # type: ignore[attr-defined]
            if getattr(error, "wait", None):
                headers["Retry-After"] = str(int(error.wait) + 1)  # type: ignore[attr-defined]
            return problem(error.status_code, str(error.detail), headers=headers)
    return None


def _fields(detail: Any, path: str = "") -> Iterator[Problem]:
    """DRF's nested error structure, flattened to paths."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            name = "" if key == "non_field_errors" else str(key)
            yield from _fields(value, ".".join(part for part in (path, name) if part))
    elif isinstance(detail, list | tuple):
        for value in detail:
            yield from _fields(value, path)
    else:
        yield Problem(path, str(detail), str(getattr(detail, "code", "invalid")))
