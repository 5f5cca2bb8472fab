"""Cursor paging with a fixed ceiling: a page neither skips nor repeats a row because new ones came in."""

from rest_framework.pagination import CursorPagination


class OldestFirst(CursorPagination):
    """Rows of a record, in the order in which they began."""

    ordering = ("started_at", "id")
    page_size = 200
    page_size_query_param = "limit"
    max_page_size = 1000
