"""A project whole: its rows out of one moment of the store, and into another store in one transaction.

Out come the rows of `core.store.layout`, table after table, never more than a few hundred in memory.  In go rows that
somebody has checked (`core.projects.archive`): a new project is made, nothing that is there is changed, and either
everything is kept or nothing.

Numbers of events are handed out anew by the store that takes them in, as are ids of runs that are taken there; what
refers to them follows, in columns and within JSON.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from core.errors import StoreError
from core.people import Actor
from core.store import schema
from core.store.database import StorePart, Transaction, in_chunks, only_once
from core.store.driver_errors import in_our_words
from core.store.layout import LAYOUT, OF_THE_WORKER, Row, decode, encode
from core.store.log import IMPORTED, Action, body_text

UNFINISHED = ("queued", "running")
RUN_ID = re.compile(r"(?<![0-9A-Za-z])r[0-9a-f]{12}(?![0-9A-Za-z])")
_SETTLED = "comment settled"  # the one kind of event that names another event by its number
_ROWS, _BYTES = 200, 8_000_000
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


class Transfers(StorePart):
    def dump(
        self, project_id: str, *, replies: bool = True
    ) -> Generator[tuple[str, Iterator[dict[str, Any]]], None, None]:
        """(table, its rows) for every table of `core.store.layout`, all of one moment; read them in this order.

        Runs that are not over come as cancelled; without `replies` the table of replies is empty.
        """
        with self._db.read("REPEATABLE READ") as transaction:
            numbers: dict[int, int] = {}
            for name in LAYOUT:
                query = _rows_of(name, project_id)
                if name == "run_replies" and not replies:
                    query = query.where(sa.false())
                yield name, _leaving(transaction, name, query, numbers)

    def taken(self, run_ids: Iterable[str]) -> set[str]:
        """Those of the ids that runs of this store have."""
        taken: set[str] = set()
        for some in in_chunks(sorted(run_ids)):
            rows = self._db.rows(sa.select(schema.runs.c.run_id).where(schema.runs.c.run_id.in_(some)))
            taken.update(row.run_id for row in rows)
        return taken

    @only_once
    def restore(self, arrival: Arrival, tables: Iterable[tuple[str, Iterable[Row]]]) -> str:
        """Make a project of checked rows and return its id; nothing is stored when anything goes wrong on the way.

        Also what `tables` raises while it is read leaves nothing behind.  StoreError for two rows with one key.
        """
        project_id = arrival.project_id or f"p{uuid.uuid4().hex[:12]}"
        log, numbers = arrival.log, dict[int, int]()
        with self._db.write() as transaction:
            now = transaction.now
            project = {"project_id": project_id, "name": arrival.name, "created_at": now}
            project["imported_at"] = None if arrival.project_id else now
            brought = {
                "project_id": project_id,
                "kind": log.kind,
                "subject": project_id,
                "actor": arrival.actor.name,
                "role": arrival.actor.role,
                "form": uuid.uuid4().hex,
                "body": body_text(log),
                "created_at": now,
            }
            try:
                transaction.execute(sa.insert(schema.projects), project)
                for name, rows in tables:
                    table = schema.metadata.tables[name]
                    if name == "events":  # one by one: each gets a number here that later ones refer to
                        for row in rows:
                            stored = _arriving(name, _renumbered(row, numbers), arrival, project_id, now)
                            number = stored.pop("number")
                            key = transaction.execute(sa.insert(table), stored).inserted_primary_key
                            numbers[number] = key[0] if key else 0
                    else:
                        for chunk in _chunks(_arriving(name, row, arrival, project_id, now) for row in rows):
                            if name in _SHARED:
                                transaction.insert_new(table, chunk)
                            else:
                                transaction.execute(sa.insert(table), chunk)
                transaction.execute(sa.insert(schema.events), brought)
            except sa.exc.IntegrityError as error:
                words = "Two rows of the file have the same key, or a row refers to none. Nothing was stored."
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
    if "run_id" not in columns:  # golden sets that the project has, or that something in it is about
        with_golden = [t for t in schema.metadata.sorted_tables if {"project_id", "golden_id"} <= set(t.c.keys())]
        used = sa.union(*(sa.select(t.c.golden_id).where(t.c.project_id == project_id) for t in with_golden))
        return query.where(columns.golden_id.in_(used)).order_by(*ids)
    if name == "run_replies":  # with its text, which may be that of a reply that serves everybody
        shared = schema.replies
        text = sa.func.coalesce(columns.body, shared.c.body).label("body")
        query = sa.select(columns.run_id, columns.reply_key, columns.paid, text).select_from(table)
        query = query.outerjoin(shared, shared.c.reply_key == columns.reply_key)
    query = query.join(schema.runs, runs.run_id == columns.run_id)
    return query.where(runs.project_id == project_id).order_by(runs.created_at, *ids)


def _leaving(
    transaction: Transaction, name: str, query: sa.Select[Any], numbers: dict[int, int]
) -> Iterator[dict[str, Any]]:
    with in_our_words():
        for stored in transaction.connection.execution_options(yield_per=_ROWS).execute(query):
            row = encode(name, dict(stored._mapping))
            if name == "runs" and row["status"] in UNFINISHED:
                row |= {"status": "cancelled", "message": "was not over when the project was exported"}
                row["finished_at"] = row["updated_at"]
            if name in _OF_RUNS:
                row = _of_project(row, "")
            if name == "events":
                numbers[row["number"]] = len(numbers) + 1
                row = _renumbered(row, numbers) | {"number": numbers[row["number"]]}
            yield row


def _of_project(row: Row, project_id: str) -> dict[str, Any]:
    """The row with `project_id` wherever its JSON names the project it belongs to."""

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: project_id if k == "project_id" else put(item) for k, item in value.items()}
        return [put(item) for item in value] if isinstance(value, list) else value

    return {name: put(value) if name in ("request", "body") else value for name, value in row.items()}


def _renumbered(row: Row, numbers: Mapping[int, int]) -> dict[str, Any]:
    """The event; one that settles a comment names it by the comment's other number."""
    if row["kind"] != _SETTLED:
        return dict(row)
    comment = numbers[row["body"]["comment"]]
    form = f"settled:{comment}" if row["form"].startswith("settled:") else row["form"]
    return {**row, "body": row["body"] | {"comment": comment}, "form": form}


# ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _arriving(name: str, row: Row, arrival: Arrival, project_id: str, now: float) -> dict[str, Any]:
    """The row to store in table `name`: of this project, with the ids that its runs have here."""
    stored = decode(name, _of_project(row, project_id) if name in _OF_RUNS else row)
    if arrival.runs and name not in _SHARED:
        for column, value in stored.items():
            if isinstance(value, str):
                stored[column] = RUN_ID.sub(lambda match: arrival.runs.get(match[0], match[0]), value)
    if name == "runs":  # whatever the file says: runs of a time after the import were made here
        stored |= {**OF_THE_WORKER, "created_at": min(float(stored["created_at"]), now)}
    if name == "events" and not stored["role"].endswith(IMPORTED):
        stored["role"] += IMPORTED
    if "project_id" in schema.metadata.tables[name].c:
        stored["project_id"] = project_id
    return stored


def _chunks(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
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
