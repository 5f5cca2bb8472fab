"""The reference of a submission: the same rows by hand-written INSERTs, and a trivial page that shows the job.

An ASGI application for uvicorn. `BARE_DATABASE` is a database of the portal's that has at least one job, whose rows are
the model; it takes no session, checks nothing, and escapes nothing.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from tests.bench.hello import Receive, Send

Values = dict[str, Any]
# Table, and the column by which its rows hang on the job.
TABLES = {"jobs_job": "id", "jobs_attempt": "job_id", "jobs_event": "job_id", "audit_entry": "subject_id"}
_local = threading.local()


class Database:
    """Rows as dictionaries, for either engine; one connection a thread."""

    def __init__(self, url: str) -> None:
        self.is_postgres = url.startswith("postgres")
        self._where = url.removeprefix("sqlite:///") if not self.is_postgres else url
        self._mark = "%s" if self.is_postgres else "?"

    def connection(self) -> Any:
        found = getattr(_local, "connection", None)
        if found is None:
            found = _local.connection = self._connect()
        return found

    def _connect(self) -> Any:
        if self.is_postgres:
            return psycopg.connect(self._where, autocommit=True)
        made = sqlite3.connect(self._where, timeout=20, isolation_level="IMMEDIATE")
        made.execute("PRAGMA synchronous=NORMAL")
        return made

    def first(self, table: str, column: str, key: Any) -> Values:
        """The first row of a table with this value; of the newest job if `key` is None."""
        order = "submitted_at DESC" if table == "jobs_job" else "id"
        condition = "" if key is None else f"WHERE {column} = {self._mark}"
        text = f"SELECT * FROM {table} {condition} ORDER BY {order} LIMIT 1"  # noqa: S608 - names of our own
        cursor = self.connection().execute(text, () if key is None else (key,))
        names = [each[0] for each in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))

    def insert(self, rows: Mapping[str, Values]) -> None:
        """All of them in one transaction."""
        connection = self.connection()
        with connection.transaction() if self.is_postgres else connection:
            for table, row in rows.items():
                names, marks = ", ".join(f'"{name}"' for name in row), ", ".join(self._mark for _ in row)
                text = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 - names of our own
                connection.execute(text, [self._value(value) for value in row.values()])

    def key(self, job: UUID) -> Any:
        return job if self.is_postgres else job.hex

    def _value(self, value: Any) -> Any:
        return Jsonb(value) if isinstance(value, dict | list) else value


class Bare:
    """POST makes a job and leads to its page; GET shows one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._models = self._read_models()

    def _read_models(self) -> dict[str, Values]:
        job = self._database.first("jobs_job", "id", None)
        models = {}
        for table, column in TABLES.items():
            # The audit names its subject by a text, however the database stores a UUID.
            key = str(UUID(str(job["id"]))) if table == "audit_entry" else job["id"]
            models[table] = self._database.first(table, column, key)
        # Nobody shall run them.
        models["jobs_job"] |= {"state": "cancelled", "idempotency_key": None}
        models["jobs_attempt"] |= {"state": "cancelled", "due_at": None, "withdrawn_at": job["submitted_at"]}
        return models

    def submit(self) -> str:
        job = uuid4()
        rows = {}
        for table, column in TABLES.items():
            row = {name: value for name, value in self._models[table].items() if name != "id"}
            rows[table] = row | {column: str(job) if table == "audit_entry" else self._database.key(job)}
        rows["jobs_attempt"]["object_name"] = f"bt-{job.hex}-1"
        self._database.insert(rows)
        return f"/jobs/{job}"

    def page(self, path: str) -> str:
        job = UUID(path.rpartition("/")[2])
        row = self._database.first("jobs_job", "id", self._database.key(job))
        return f"<!doctype html><title>{row['name']}</title><h1>{row['state']}</h1><p>{row['submitted_by_name']}</p>"


async def app(scope: Values, receive: Receive, send: Send) -> None:
    """The database's work is done in threads, as Django does it."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/":
        await _answer(send, 200, b"ready")
    elif scope["method"] == "POST":
        place = await asyncio.to_thread(_bare().submit)
        await _answer(send, 302, b"", (b"location", place.encode()))
    else:
        await _answer(send, 200, (await asyncio.to_thread(_bare().page, scope["path"])).encode())


async def _answer(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    given = [(b"content-type", b"text/html"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": body})


_made: list[Bare] = []
_lock = threading.Lock()


def _bare() -> Bare:
    with _lock:
        if not _made:
            _made.append(Bare(Database(os.environ["BARE_DATABASE"])))
    return _made[0]
