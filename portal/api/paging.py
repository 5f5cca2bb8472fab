"""Cursor paging with a fixed ceiling: a page neither skips nor repeats a row because new ones came in."""

from datetime import UTC

from django.utils.dateparse import parse_datetime
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from portal.api.parsing import whole_number
from portal.core.errors import Problem, Refused


class OldestFirst(CursorPagination):
    """Rows of a record, in the order in which they began. Raises `Refused` on "cursor" and "limit"."""

    ordering = ("started_at", "id")
    page_size = 200
    max_page_size = 1000

    def get_page_size(self, request: Request) -> int:
        return whole_number(request, "limit", default=self.page_size, least=1, most=self.max_page_size)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """DRF believes whatever position a cursor holds, and the database then chokes on it."""
        try:
            cursor: Cursor | None = super().decode_cursor(request)
        except NotFound:
            raise _not_ours() from None
        # The stubs call the position a number; it is the text of the first field that is sorted by.
        if cursor is not None and cursor.position is not None and not _is_moment(str(cursor.position)):
            raise _not_ours()
        return cursor


def _not_ours() -> Refused:
    return Refused(Problem("cursor", "This cursor is not one of ours. Begin at the first page."))


def _is_moment(text: str) -> bool:
    try:
        moment = parse_datetime(text)
        return moment is not None and moment.tzinfo is not None and bool(moment.astimezone(UTC))
    except (ValueError, OverflowError):
        return False
