"""Emptying the tables between tests that commit, although some of them refuse every deletion.

PostgreSQL empties tables with TRUNCATE, which asks no trigger; SQLite deletes row by row, and append-only tables would
refuse. For the length of the flush the triggers are gone.
"""

from collections.abc import Sequence
from typing import Any

# Its modules import each other, and only this one may come first; on PostgreSQL nobody else has loaded it.
import django.db.backends.sqlite3.base  # noqa: F401
from django.core.management.color import Style
from django.db.backends.sqlite3.operations import DatabaseOperations

_flush = DatabaseOperations.sql_flush


def _without_triggers(self: DatabaseOperations, style: Style, tables: Sequence[str], **options: Any) -> list[str]:
    with self.connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = cursor.fetchall()
    statements = list(_flush(self, style, tables, **options))
    return [f"DROP TRIGGER {name}" for name, _sql in triggers] + statements + [sql for _name, sql in triggers]


def let_tests_flush() -> None:
    """Called once, before the first database is made."""
    DatabaseOperations.sql_flush = _without_triggers  # type: ignore[method-assign, assignment]
