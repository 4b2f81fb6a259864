"""A project whole: its rows out of one moment of the store, and into another store in one transaction.

Out come the rows of `core.store.layout`, table after table, never more than a few hundred in memory.  In go rows that
somebody has checked (`core.projects.archive`): a new project is made, nothing that is there is changed, and either
everything is kept or nothing.

Numbers of events are handed out anew by the store that takes them in, as are ids of runs that are taken there; what
refers to them follows, in columns and within JSON.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from core.errors import StoreError
from core.people import Actor
from core.store import schema
from core.store.database import Database, in_our_words
from core.store.layout import LAYOUT, OF_THE_WORKER, Row, decode, encode
from core.store.log import IMPORTED, Action, body_text
from core.store.reconnecting import Part, only_once

UNFINISHED = ("queued", "running")
RUN_ID = re.compile(r"(?<![0-9A-Za-z])r[0-9a-f]{12}(?![0-9A-Za-z])")
_SETTLED = "comment settled"  # the one kind of event that names another event by its number
_FETCHED, _ROWS, _BYTES = 200, 200, 8_000_000
_SHARED = ("goldens", "golden_items")  # known by the hash of their content: what is there already is the same
_OF_RUNS = ("runs", "run_documents")


@dataclass(frozen=True, slots=True)
class Arrival:
    """What is made of a project that comes in; `runs` maps the ids of runs that change, `log` says who brought it.

    With a `project_id` it is one that ships with Concord, as trusted as the program, and does not count as imported.
    """

    name: str
    actor: Actor
    log: Action
    runs: Mapping[str, str]
    project_id: str = ""


class Transfers(Part):
    def dump(
        self, project_id: str, *, replies: bool = True
    ) -> Generator[tuple[str, Iterator[dict[str, Any]]], None, None]:
        """(table, its rows) for every table of `core.store.layout`, all of one moment; read them in this order.

        Runs that are not over come as cancelled; without `replies` the table of replies is empty.
        """
        with self._db.snapshot() as connection:
            numbers: dict[int, int] = {}
            for table in LAYOUT:
                left_out = not replies and table == "run_replies"
                query = None if left_out else _rows_of(table, project_id)
                yield table, _leaving(table, _streamed(connection, query), numbers)

    def taken(self, run_ids: Iterable[str]) -> set[str]:
        """Those of the ids that runs of this store have."""
        wanted = sorted(run_ids)
        taken: set[str] = set()
        with self._db.read() as connection:
            for start in range(0, len(wanted), 500):
                which = schema.runs.c.run_id.in_(wanted[start : start + 500])
                taken.update(connection.scalars(sa.select(schema.runs.c.run_id).where(which)))
        return taken

    @only_once
    def restore(self, arrival: Arrival, tables: Iterable[tuple[str, Iterable[Row]]]) -> str:
        """Make a project of checked rows and return its id; nothing is kept when anything goes wrong on the way.

        Also what `tables` raises while it is read leaves nothing behind.  StoreError for two rows with one key.
        """
        project_id = arrival.project_id or f"p{uuid.uuid4().hex[:12]}"
        with self._db.write() as connection:
            now = self._db.now(connection)
            row = {"project_id": project_id, "name": arrival.name, "created_at": now}
            row["imported_at"] = None if arrival.project_id else now
            try:
                connection.execute(sa.insert(schema.projects), row)
                taking = _Taking(connection, self._db, project_id, arrival.runs, now)
                for name, rows in tables:
                    taking.take(name, rows)
                taking.log(arrival)
            except sa.exc.IntegrityError as error:
                words = "Two rows of the file have the same key, or a row refers to none. Nothing was kept."
                raise StoreError(words) from error
        return project_id


# ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _rows_of(name: str, project_id: str) -> sa.Select[Any]:
    """The rows of table `name` that belong to a project, in an order that depends on no id where time tells one."""
    table, runs = schema.metadata.tables[name], schema.runs.c
    columns, query = table.c, sa.select(table)
    ids = [key for key in table.primary_key.columns if key.name != "project_id"]
    if "project_id" in columns:
        first = () if "number" in columns else (columns.created_at,)
        return query.where(columns.project_id == project_id).order_by(*first, *ids)
    if name == "run_replies":  # with its text, which may be that of a reply that serves everybody
        own, shared = schema.run_replies, schema.replies
        text = sa.func.coalesce(own.c.body, shared.c.body).label("body")
        both = own.outerjoin(shared, shared.c.reply_key == own.c.reply_key).join(
            schema.runs, runs.run_id == own.c.run_id
        )
        query = sa.select(own.c.run_id, own.c.reply_key, own.c.paid, text).select_from(both)
        return query.where(runs.project_id == project_id).order_by(runs.created_at, *ids)
    if "run_id" in columns:
        query = query.join(schema.runs, runs.run_id == columns.run_id).where(runs.project_id == project_id)
        return query.order_by(runs.created_at, *ids)
    return query.where(columns.golden_id.in_(_used(project_id))).order_by(*ids)


def _used(project_id: str) -> Any:
    """Golden sets that the project has, or that something in it is about."""
    tables = [table for table in schema.metadata.sorted_tables if {"project_id", "golden_id"} <= set(table.c.keys())]
    return sa.union(*(sa.select(table.c.golden_id).where(table.c.project_id == project_id) for table in tables))


def _streamed(connection: sa.Connection, query: sa.Select[Any] | None) -> Iterator[dict[str, Any]]:
    if query is None:
        return
    with in_our_words():
        for row in connection.execution_options(yield_per=_FETCHED).execute(query):
            yield dict(row._mapping)


def _leaving(name: str, rows: Iterator[dict[str, Any]], numbers: dict[int, int]) -> Iterator[dict[str, Any]]:
    for stored in rows:
        row = encode(name, stored)
        if name == "runs" and row["status"] in UNFINISHED:
            row |= {"status": "cancelled", "message": "was not over when the project was exported"}
            row["finished_at"] = row["updated_at"]
        if name in _OF_RUNS:
            row = _of_project(row, "")
        if name == "events":
            numbers[row["number"]] = len(numbers) + 1
            row = _renumbered(row, numbers)
        yield row


def _of_project(row: dict[str, Any], project_id: str) -> dict[str, Any]:
    """The row with `project_id` wherever its JSON names the project it belongs to."""

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: project_id if k == "project_id" else put(item) for k, item in value.items()}
        return [put(item) for item in value] if isinstance(value, list) else value

    for column in ("request", "body"):
        kept = row.get(column)
        if kept is not None and '"project_id"' in (kept if isinstance(kept, str) else json.dumps(kept)):
            row = row | {column: put(kept)}
    return row


def _renumbered(row: dict[str, Any], numbers: Mapping[int, int]) -> dict[str, Any]:
    """The event under its other number, and with it the number of the comment that it settles."""
    row = row | {"number": numbers[row["number"]]}
    if row["kind"] != _SETTLED:
        return row
    body, form = row["body"], row["form"]
    comment = numbers[body["comment"]]
    form = f"settled:{comment}" if form.startswith("settled:") else form
    return row | {"body": body | {"comment": comment}, "form": form}


# ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────


class _Taking:
    """Rows going into one project within a transaction."""

    def __init__(
        self, connection: sa.Connection, database: Database, project_id: str, runs: Mapping[str, str], now: float
    ) -> None:
        self._connection, self._db, self._project_id, self._runs = connection, database, project_id, runs
        self._now = now
        self._numbers: dict[int, int] = {}

    def take(self, name: str, rows: Iterable[Row]) -> None:
        if name == "events":
            for row in rows:
                self._event(dict(row))
            return
        table = schema.metadata.tables[name]
        shared = name in _SHARED
        insert = self._db.insert_new(table) if shared else sa.insert(table)
        for chunk in _chunks(self._stored(name, row) for row in rows):
            self._connection.execute(insert, chunk)

    def log(self, arrival: Arrival) -> None:
        """The first entry that was written here: who brought the project, and from what file."""
        log, actor = arrival.log, arrival.actor
        row = {"kind": log.kind, "subject": self._project_id, "actor": actor.name, "role": actor.role}
        now = self._db.now(self._connection)
        own = {"project_id": self._project_id, "form": uuid.uuid4().hex, "body": body_text(log), "created_at": now}
        self._connection.execute(sa.insert(schema.events), row | own)

    def _stored(self, name: str, row: Row) -> dict[str, Any]:
        whole = _of_project(dict(row), self._project_id) if name in _OF_RUNS else dict(row)
        stored = decode(name, whole)
        if self._runs and name not in _SHARED:
            stored = {column: self._renamed(value) for column, value in stored.items()}
        if name == "runs":  # whatever the file says: runs of a time after the import were made here
            stored |= {**OF_THE_WORKER, "created_at": min(float(stored["created_at"]), self._now)}
        if "project_id" in schema.metadata.tables[name].c:
            stored["project_id"] = self._project_id
        return stored

    def _renamed(self, value: Any) -> Any:
        return RUN_ID.sub(lambda match: self._runs.get(match[0], match[0]), value) if isinstance(value, str) else value

    def _event(self, row: dict[str, Any]) -> None:
        number, role = row["number"], row["role"]
        if row["kind"] == _SETTLED:
            self._numbers[number] = number
            row = _renumbered(row, self._numbers)
        stored = self._stored("events", row)
        del stored["number"]
        stored["role"] = role if role.endswith(IMPORTED) else role + IMPORTED
        key = self._connection.execute(sa.insert(schema.events), stored).inserted_primary_key
        assert key is not None
        self._numbers[number] = key[0]


def _chunks(rows: Iterable[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    """Rows in groups of bounded number and size."""
    chunk: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str | bytes))
        if len(chunk) >= _ROWS or size > _BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
