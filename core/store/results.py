"""What runs leave behind: named documents (snapshot, judge, result) and scores.

Scores are kept per run and criteria as one
float64 BLOB over all items of the golden set, in the golden set's order, NaN where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from core.errors import LostRunError, StoreError
from core.records import FloatArray, ScoreMatrix, Unscored
from core.store.codec import Packed, pack, unpack
from core.store.database import Database
from core.store.patience import Part
from core.store.rows import CriteriaScores
from core.store.schema import documents, goldens, runs, scores


@dataclass(frozen=True, slots=True)
class _Reasons:
    unscored: tuple[Unscored, ...]


class Results(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

    # ── documents ────────────────────────────────────────────────────────────────────────────────────────────

    def document(self, run_id: str, name: str) -> Packed | None:
        """The run's document of that name, or None."""
        query = sa.select(documents.c.body, documents.c.blob).where(documents.c.run_id == run_id)
        with self._db.read() as connection:
            found = connection.execute(query.where(documents.c.name == name)).one_or_none()
        return None if found is None else Packed(found.body, found.blob)

    def put_document(self, run_id: str, name: str, document: Packed, *, attempt: int | None = None) -> None:
        """Store or overwrite; a screen that polls the run's version sees it.

        LostRunError, and nothing is stored, where the run is no longer at work in this `attempt`.
        """
        with self._db.write() as connection:
            row = {"run_id": run_id, "name": name, "body": document.body, "blob": document.blob}
            connection.execute(self._db.insert_or_replace(documents), row)
            _touch(connection, run_id, attempt)

    # ── scores ───────────────────────────────────────────────────────────────────────────────────────────────

    def add_scores(self, run_id: str, new: Sequence[CriteriaScores], *, attempt: int | None = None) -> None:
        """Write scores over those at the same positions; a repetition changes nothing.  `attempt` as above."""
        with self._db.write() as connection:
            _touch(connection, run_id, attempt)
            n_items = _n_items(connection, run_id)
            known = {row.criteria_id: row for row in _score_rows(connection, run_id, [s.criteria_id for s in new])}
            rows = [_merged(run_id, n_items, known.get(one.criteria_id), one) for one in new]
            if rows:
                connection.execute(self._db.insert_or_replace(scores), rows)

    def scores(self, run_id: str, item_ids: Sequence[str], criteria_ids: Sequence[str] | None = None) -> ScoreMatrix:
        """(n_criteria, n_items) in the golden set's order, of all criteria the run scored or of those named.

        `item_ids` are the golden set's.  Criteria without any score are absent.
        """
        with self._db.read() as connection:
            found = {row.criteria_id: row for row in _score_rows(connection, run_id, criteria_ids)}
        names = [name for name in (found if criteria_ids is None else criteria_ids) if name in found]
        values = np.array([_values(found[name].blob, len(item_ids)) for name in names], dtype=np.float64)
        reasons = {name: unpack(_Reasons, Packed(found[name].body)).unscored for name in names}
        return ScoreMatrix(
            tuple(names),
            tuple(item_ids),
            values.reshape(len(names), len(item_ids)),
            {name: why for name, why in reasons.items() if why},
        )


def _touch(connection: sa.Connection, run_id: str, attempt: int | None) -> None:
    change = sa.update(runs).where(runs.c.run_id == run_id).values(version=runs.c.version + 1)
    if attempt is not None:
        change = change.where(runs.c.attempt == attempt, runs.c.status == "running")
    if connection.execute(change).rowcount != 1 and attempt is not None:
        raise LostRunError("Another worker has the run.")


def _n_items(connection: sa.Connection, run_id: str) -> int:
    query = sa.select(goldens.c.n_items).join(runs, runs.c.golden_id == goldens.c.golden_id)
    return int(connection.execute(query.where(runs.c.run_id == run_id)).scalar_one())


def _score_rows(connection: sa.Connection, run_id: str, criteria_ids: Sequence[str] | None) -> Sequence[Any]:
    query = sa.select(scores.c.criteria_id, scores.c.body, scores.c.blob).where(scores.c.run_id == run_id)
    if criteria_ids is not None:
        query = query.where(scores.c.criteria_id.in_(list(criteria_ids)))
    found: Sequence[Any] = connection.execute(query.order_by(scores.c.criteria_id)).all()
    return found


def _values(blob: bytes, n_items: int) -> FloatArray:
    values = np.frombuffer(blob, dtype="<f8").astype(np.float64)
    if len(values) != n_items:
        raise StoreError(f"Stored scores are of {len(values)} items and the golden set has {n_items}.")
    return values


def _merged(run_id: str, n_items: int, known: Any, new: CriteriaScores) -> dict[str, Any]:
    values = np.full(n_items, np.nan) if known is None else _values(known.blob, n_items)
    values[list(new.positions)] = new.values
    reasons = {} if known is None else {u.item_id: u for u in unpack(_Reasons, Packed(known.body)).unscored}
    reasons.update((one.item_id, one) for one in new.unscored)
    return {
        "run_id": run_id,
        "criteria_id": new.criteria_id,
        "body": pack(_Reasons(tuple(reasons.values()))).body,
        "blob": values.astype("<f8").tobytes(),
    }
