"""Projects, and golden sets: stored once by content digest, linked to projects under a name.

An item is a row (so that screens page in SQL); labels and metrics are one JSON text, ratings another, by columns.
What comes back equals what went in, float for float, and carries its digest without hashing again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from core.errors import NotFoundError
from core.project_records import AspectSummary, GoldenItem, GoldenSummary, ProjectSummary
from core.records import AspectLabels, GoldenSet, Item, Rating
from core.store.codec import pack, unpack
from core.store.database import Database, record_of
from core.store.reconnecting import Part
from core.store.schema import golden_items, goldens, metadata, project_goldens, projects, runs
from core.store.unchanged import read_once


class Projects(Part):
    def add(self, name: str, project_id: str | None = None) -> str:
        """Enter a project; with a `project_id` that exists already nothing changes.  Returns the id."""
        identity = project_id or f"p{uuid.uuid4().hex[:12]}"
        with self._db.write() as connection:
            row = {"project_id": identity, "name": name, "created_at": self._db.now(connection)}
            connection.execute(self._db.insert_new(projects), row)
        return identity

    @read_once
    def all(self) -> list[ProjectSummary]:
        """Every project, oldest first."""
        with self._db.read() as connection:
            rows = connection.execute(_counted().order_by(projects.c.created_at, projects.c.project_id))
            return [record_of(ProjectSummary, row) for row in rows]

    def remove(self, project_id: str) -> None:
        """Take a project out with all that belongs to it alone; golden sets stay, other projects may share them."""
        its_runs = sa.select(runs.c.run_id).where(runs.c.project_id == project_id)
        with self._db.write() as connection:
            for table in reversed(metadata.sorted_tables):  # each before those that it refers to
                if "project_id" in table.c:
                    connection.execute(sa.delete(table).where(table.c.project_id == project_id))
                elif "run_id" in table.c:
                    connection.execute(sa.delete(table).where(table.c.run_id.in_(its_runs)))

    @read_once
    def get(self, project_id: str) -> ProjectSummary:
        """NotFoundError for an unknown id."""
        with self._db.read() as connection:
            row = connection.execute(_counted().where(projects.c.project_id == project_id)).one_or_none()
        if row is None:
            raise NotFoundError(f"There is no project {project_id!r}. It may have been made in another CONCORD_HOME.")
        return record_of(ProjectSummary, row)


def _counted() -> sa.Select[tuple[str, str, float, float | None, int, int]]:
    def count(table: sa.Table, name: str) -> sa.Label[int]:
        within = sa.select(sa.func.count()).where(table.c.project_id == projects.c.project_id)
        return within.scalar_subquery().label(name)

    return sa.select(
        projects.c.project_id,
        projects.c.name,
        projects.c.created_at,
        projects.c.imported_at,
        count(project_goldens, "n_goldens"),
        count(runs, "n_runs"),
    )


# ── golden sets ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class GoldenBody:
    """What a golden set holds beside its items and ratings."""

    aspects: dict[str, AspectLabels]
    metrics: dict[str, tuple[float | None, ...]]
    given_split: tuple[str, ...]
    columns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RatingColumns:
    """Ratings by columns; ids, raters and aspects as codes into lists of names, comments by position."""

    item_id: tuple[int, ...]
    item_ids: tuple[str, ...]
    rater_id: tuple[int, ...]
    rater_ids: tuple[str, ...]
    aspect: tuple[int, ...]
    aspects: tuple[str, ...]
    value: tuple[float, ...]
    comment: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Aspects:
    rows: tuple[AspectSummary, ...]


_KEPT = 4  # loaded golden sets held in memory per process; one of 1,600 items and 38,000 ratings takes some 15 MB


class Goldens(Part):
    def __init__(self, database: Database) -> None:
        self._db = database
        self._load = lru_cache(maxsize=_KEPT)(self._load_anew)

    def add(self, project_id: str, golden: GoldenSet) -> str:
        """Store and link; a second time changes nothing.  Returns the digest, the golden set's id."""
        with self._db.write() as connection:
            now = self._db.now(connection)
            there = connection.execute(sa.select(goldens.c.golden_id).where(goldens.c.golden_id == golden.digest))
            if there.one_or_none() is None:
                connection.execute(self._db.insert_new(goldens), golden_row(golden, now))
                if golden.items:
                    connection.execute(self._db.insert_new(golden_items), item_rows(golden))
            link = {"project_id": project_id, "golden_id": golden.digest, "name": golden.name, "created_at": now}
            connection.execute(self._db.insert_new(project_goldens), link)
        return golden.digest

    @read_once
    def all(self, project_id: str) -> list[GoldenSummary]:
        """The project's golden sets, newest first."""
        query = _summary().where(project_goldens.c.project_id == project_id)
        query = query.order_by(project_goldens.c.created_at.desc(), project_goldens.c.golden_id)
        with self._db.read() as connection:
            return [_row(row) for row in connection.execute(query)]

    @read_once
    def get(self, golden_id: str) -> GoldenSummary:
        """NotFoundError for an unknown id.  The name is the one it was first linked under."""
        with self._db.read() as connection:
            return _row(_one(connection, golden_id))

    def load(self, golden_id: str) -> GoldenSet:
        """The whole golden set, equal to what was added.  NotFoundError for an unknown id.

        Golden sets never change, so the last few loaded are handed out again.
        """
        return self._load(golden_id)

    def _load_anew(self, golden_id: str) -> GoldenSet:
        with self._db.read() as connection:
            name = _one(connection, golden_id).name
            head = connection.execute(sa.select(goldens).where(goldens.c.golden_id == golden_id)).one()
            bodies = connection.execute(_bodies(golden_id)).scalars().all()
        golden = replace(rebuilt(head._asdict(), bodies), name=name)
        golden.__dict__["digest"] = golden_id  # it is stored under its own hash: no need to compute it again
        return golden

    def page(self, golden_id: str, offset: int, limit: int) -> list[GoldenItem]:
        """Items at positions `offset` … `offset + limit - 1`, with their labels.  NotFoundError for an unknown id."""
        with self._db.read() as connection:
            _one(connection, golden_id)
            body = connection.execute(sa.select(goldens.c.body).where(goldens.c.golden_id == golden_id)).scalar_one()
            within = golden_items.c.position.between(offset, offset + limit - 1)
            items = _items(connection.execute(_bodies(golden_id).where(within)).scalars().all())
        aspects = unpack(GoldenBody, body).aspects
        return [
            GoldenItem(position, item, {name: labels.values[position] for name, labels in aspects.items()})
            for position, item in enumerate(items, start=offset)
        ]


def _summary() -> sa.Select[Any]:
    columns = [c for c in goldens.c if c.name not in ("body", "ratings", "created_at")]
    link = project_goldens.c
    return sa.select(*columns, link.name, link.created_at).join(goldens, goldens.c.golden_id == link.golden_id)


def _one(connection: sa.Connection, golden_id: str) -> sa.Row[Any]:
    query = _summary().where(goldens.c.golden_id == golden_id).order_by(project_goldens.c.created_at).limit(1)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFoundError(f"There is no golden set {golden_id[:24]!r}. It may have been added to another store.")
    return row


def _bodies(golden_id: str) -> sa.Select[Any]:
    query = sa.select(golden_items.c.body).where(golden_items.c.golden_id == golden_id)
    return query.order_by(golden_items.c.position)


def _row(row: sa.Row[Any]) -> GoldenSummary:
    return record_of(GoldenSummary, row, aspects=unpack(_Aspects, row.aspects).rows)


def rebuilt(head: Mapping[str, Any], item_bodies: Sequence[str]) -> GoldenSet:
    """The golden set that a row of `goldens` and the bodies of its items stand for, its digest still to be computed.

    KeyError, TypeError, ValueError or IndexError for rows that this module did not write.
    """
    body, ratings = unpack(GoldenBody, head["body"]), _ratings(head["ratings"])
    items = _items(item_bodies)
    return GoldenSet("", head["kind"], items, body.aspects, ratings, body.metrics, body.given_split, body.columns)


def golden_row(golden: GoldenSet, now: float) -> dict[str, Any]:
    """The row of `goldens` for a golden set."""
    aspects = _Aspects(tuple(AspectSummary(a, labels.scale, labels.n_labelled) for a, labels in golden.aspects.items()))
    body = GoldenBody(dict(golden.aspects), dict(golden.metrics), golden.given_split, dict(golden.columns))
    return {
        "golden_id": golden.digest,
        "kind": golden.kind,
        "n_items": len(golden.items),
        "n_sources": golden.n_sources,
        "n_systems": golden.n_systems,
        "n_ratings": len(golden.ratings),
        "aspects": pack(aspects).body,
        "body": pack(body).body,
        "ratings": json.dumps(_rating_columns(golden.ratings)),
        "created_at": now,
    }


def item_rows(golden: GoldenSet) -> list[dict[str, Any]]:
    """The rows of `golden_items` for a golden set, in its order."""
    return [
        {
            "golden_id": golden.digest,
            "position": position,
            "body": json.dumps(
                [i.item_id, i.target, i.source_id, i.system_id, i.source, i.context, i.references], ensure_ascii=False
            ),
        }
        for position, i in enumerate(golden.items)
    ]


def _items(bodies: Sequence[str]) -> tuple[Item, ...]:
    fields: list[list[Any]] = json.loads(f"[{','.join(bodies)}]")
    return tuple([Item(i, t, s, y, source, c, tuple(r)) for i, t, s, y, source, c, r in fields])


def _rating_columns(ratings: Sequence[Rating]) -> dict[str, Any]:
    """The fields of `RatingColumns`, in their order."""
    columns: dict[str, Any] = {}
    for name in ("item_id", "rater_id", "aspect"):
        codes: dict[str, int] = {}
        columns[name] = [codes.setdefault(getattr(rating, name), len(codes)) for rating in ratings]
        columns[f"{name}s"] = list(codes)
    columns["value"] = [rating.value for rating in ratings]
    columns["comment"] = {str(k): rating.comment for k, rating in enumerate(ratings) if rating.comment}
    return columns


def _ratings(text: str) -> tuple[Rating, ...]:
    columns = json.loads(text)
    names = [[columns[f"{n}s"][code] for code in columns[n]] for n in ("item_id", "rater_id", "aspect")]
    comments = [""] * len(columns["value"])
    for position, comment in columns["comment"].items():
        comments[int(position)] = comment
    return tuple(map(Rating, *names, columns["value"], comments))
