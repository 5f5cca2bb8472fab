"""A migration operation: rows that the database itself refuses to change.

Python can be bypassed by a shell, an admin action or a bulk update; a trigger cannot be by any of them.
"""

from typing import Any

from django.db import migrations


def refuse_changes(
    table: str, *, name: str, when: str = "", update: bool = True, delete: bool = True
) -> migrations.RunPython:
    """Refuse UPDATE and/or DELETE on `table`, optionally only where the SQL condition `when` over OLD and NEW holds.

    The same trigger is written for SQLite and PostgreSQL. `when` may name OLD columns and, with `delete=False`, NEW
    ones; it must be valid on both databases.
    """
    events = [event for event, wanted in (("UPDATE", update), ("DELETE", delete)) if wanted]

    def forwards(_apps: Any, schema_editor: Any) -> None:
        for statement in _create(schema_editor.connection.vendor, table, name, events, when):
            schema_editor.execute(statement)

    def backwards(_apps: Any, schema_editor: Any) -> None:
        for event in events:
            suffix = f" ON {table}" if schema_editor.connection.vendor == "postgresql" else ""
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {name}_{event.lower()}{suffix}")

    return migrations.RunPython(forwards, backwards)


def _create(vendor: str, table: str, name: str, events: list[str], when: str) -> list[str]:
    message = f"{table}: this row may not be changed"
    if vendor == "sqlite":
        clause = f" WHEN {when}" if when else ""
        return [
            f"CREATE TRIGGER {name}_{event.lower()} BEFORE {event} ON {table} FOR EACH ROW{clause} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            for event in events
        ]
    clause = f" WHEN ({when})" if when else ""
    function = (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    return [
        function,
        *(
            f"CREATE TRIGGER {name}_{event.lower()} BEFORE {event} ON {table} FOR EACH ROW{clause} "
            f"EXECUTE FUNCTION {name}()"
            for event in events
        ),
    ]
