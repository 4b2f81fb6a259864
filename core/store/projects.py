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
from typing import Any, get_args

import sqlalchemy as sa

from core.errors import NotFoundError
from core.project_records import AspectSummary, GoldenSummary, ProjectSummary
from core.records import AspectLabels, GoldenSet, Item, ItemKind, Rating
from core.store.codec import pack, unpack
from core.store.database import Database, StorePart, record_of
from core.store.schema import golden_items, goldens, metadata, project_goldens, projects, runs


class Projects(StorePart):
    def add(self, name: str, project_id: str | None = None) -> str:
        """Enter a project; with a `project_id` that exists already nothing changes.  Returns the id."""
        identity = project_id or f"p{uuid.uuid4().hex[:12]}"
        with self._db.write() as transaction:
            row = {"project_id": identity, "name": name, "created_at": transaction.now}
            transaction.insert_new(projects, row)
        return identity

    def all(self) -> list[ProjectSummary]:
        """Every project, oldest first."""
        rows = self._db.rows(_counted().order_by(projects.c.created_at, projects.c.project_id))
        return [record_of(ProjectSummary, row) for row in rows]

    def get(self, project_id: str) -> ProjectSummary:
        """NotFoundError for an unknown id."""
        row = self._db.row(_counted().where(projects.c.project_id == project_id))
        if row is None:
            raise NotFoundError(f"There is no project {project_id!r}. It may have been made in another CONCORD_HOME.")
        return record_of(ProjectSummary, row)

    def remove(self, project_id: str) -> None:
        """Delete a project with all that belongs to it alone; golden sets stay, other projects may share them."""
        its_runs = sa.select(runs.c.run_id).filter_by(project_id=project_id)
        with self._db.write() as transaction:
            for table in reversed(metadata.sorted_tables):  # each before those that it refers to
                if "project_id" in table.c:
                    transaction.execute(sa.delete(table).filter_by(project_id=project_id))
                elif "run_id" in table.c:
                    transaction.execute(sa.delete(table).where(table.c.run_id.in_(its_runs)))


def _counted() -> sa.Select[Any]:
    """Projects, each with how many golden sets and runs it has."""
    counts = [
        sa.select(sa.func.count()).where(table.c.project_id == projects.c.project_id).scalar_subquery().label(name)
        for table, name in ((project_goldens, "n_goldens"), (runs, "n_runs"))
    ]
    return sa.select(projects, *counts)


# ── golden sets ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class GoldenBody:
    """What a golden set holds next to its items and ratings."""

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


_Aspects = Mapping[str, tuple[AspectSummary, ...]]
_ItemBody = tuple[str, str, str, str, str, str, tuple[str, ...]]
_CACHED = 4  # loaded golden sets per process; one of 1,600 items and 38,000 ratings takes some 15 MB


class Goldens(StorePart):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._load = lru_cache(maxsize=_CACHED)(self._load_anew)

    def add(self, project_id: str, golden: GoldenSet) -> str:
        """Store and link; a second time changes nothing.  Returns the digest, the golden set's id."""
        known = sa.select(goldens.c.golden_id).filter_by(golden_id=golden.digest)
        with self._db.write() as transaction:
            now = transaction.now
            if transaction.execute(known).one_or_none() is None:
                transaction.insert_new(goldens, golden_row(golden, now))
                transaction.insert_new(golden_items, item_rows(golden))
            link = {"project_id": project_id, "golden_id": golden.digest, "name": golden.name, "created_at": now}
            transaction.insert_new(project_goldens, link)
        return golden.digest

    def all(self, project_id: str) -> list[GoldenSummary]:
        """The project's golden sets, newest first."""
        query = _summary().where(project_goldens.c.project_id == project_id)
        query = query.order_by(project_goldens.c.created_at.desc(), project_goldens.c.golden_id)
        return [_golden(row) for row in self._db.rows(query)]

    def get(self, golden_id: str) -> GoldenSummary:
        """NotFoundError for an unknown id.  The name is the one it was first linked under."""
        query = _summary().where(goldens.c.golden_id == golden_id).order_by(project_goldens.c.created_at)
        row = self._db.row(query.limit(1))
        if row is None:
            raise NotFoundError(f"There is no golden set {golden_id[:24]!r}. It may have been added to another store.")
        return _golden(row)

    def load(self, golden_id: str) -> GoldenSet:
        """The whole golden set, equal to what was added.  NotFoundError for an unknown id.

        Golden sets never change, so the last few loaded are handed out again.
        """
        return self._load(golden_id)

    def _load_anew(self, golden_id: str) -> GoldenSet:
        name = self.get(golden_id).name
        items = sa.select(golden_items.c.body).filter_by(golden_id=golden_id).order_by(golden_items.c.position)
        with self._db.read() as transaction:
            head = transaction.execute(sa.select(goldens).filter_by(golden_id=golden_id)).one()
            bodies = transaction.execute(items).scalars().all()
        body, ratings = unpack(GoldenBody, head.body), _ratings(head.ratings)
        parts: list[list[Any]] = json.loads(f"[{','.join(bodies)}]")
        texts = tuple([Item(i, t, s, y, source, c, tuple(r)) for i, t, s, y, source, c, r in parts])
        golden = GoldenSet(name, head.kind, texts, body.aspects, ratings, body.metrics, body.given_split, body.columns)
        golden.__dict__["digest"] = golden_id  # it is stored under its own hash: no need to compute it again
        return golden

    def verified(self, golden_id: str) -> GoldenSet:
        """The golden set, read anew.  ValueError and the like where the rows are not what their hash says.

        It is shared by everybody who has the same content, so nobody may bring one under another hash.
        """
        golden, row = self._load_anew(golden_id), self._db.row(sa.select(goldens).filter_by(golden_id=golden_id))
        assert row is not None
        golden = replace(golden, name="")  # without the digest that it was handed out with
        unpack(RatingColumns, row.ratings)
        unpack(tuple[_ItemBody, ...], json.dumps([_item_body(item) for item in golden.items]))
        columns = [*golden.metrics.values(), *(labels.values for labels in golden.aspects.values())]
        if {len(golden.items), *map(len, columns)} != {len(set(golden.item_ids))}:
            raise ValueError("two items have the same id, or labels or a metric have not one value for each item")
        for aspect, labels in golden.aspects.items():
            values = [rating.value for rating in golden.ratings if rating.aspect == aspect]
            if not all(map(labels.scale.holds, [*values, *(value for value in labels.values if value is not None)])):
                raise ValueError(f"a label of {aspect[:40]!r} is not on its scale")
        told = golden_row(golden, row.created_at)
        same = all(told[name] == row._mapping[name] for name in told if name.startswith("n_"))
        if not same or json.loads(told["aspects"]) != json.loads(row.aspects) or golden.kind not in get_args(ItemKind):
            raise ValueError("the columns of a golden set are not those of its content")
        if golden.digest != golden_id:
            raise ValueError("the content of a golden set has another hash")
        return golden


def _summary() -> sa.Select[Any]:
    columns = [c for c in goldens.c if c.name not in ("body", "ratings", "created_at")]
    link = project_goldens.c
    return sa.select(*columns, link.name, link.created_at).join(goldens, goldens.c.golden_id == link.golden_id)


def _golden(row: sa.Row[Any]) -> GoldenSummary:
    return record_of(GoldenSummary, row, aspects=unpack(_Aspects, row.aspects)["rows"])  # type: ignore[type-abstract]


def golden_row(golden: GoldenSet, now: float) -> dict[str, Any]:
    """The row of `goldens` for a golden set."""
    aspects = [AspectSummary(aspect, labels.scale, labels.n_labelled) for aspect, labels in golden.aspects.items()]
    body = GoldenBody(dict(golden.aspects), dict(golden.metrics), golden.given_split, dict(golden.columns))
    return {
        "golden_id": golden.digest,
        "kind": golden.kind,
        "n_items": len(golden.items),
        "n_sources": golden.n_sources,
        "n_systems": golden.n_systems,
        "n_ratings": len(golden.ratings),
        "aspects": pack({"rows": aspects}).body,
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
            "body": json.dumps(_item_body(item), ensure_ascii=False),
        }
        for position, item in enumerate(golden.items)
    ]


def _item_body(i: Item) -> list[Any]:
    return [i.item_id, i.target, i.source_id, i.system_id, i.source, i.context, i.references]


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
