"""What runs leave behind: answers to steps, named documents (standing, judge, result), scores.

A step is written once and its number never means another question; scores are kept per run and criteria as one
float64 BLOB over all items of the golden set, in the golden set's order, NaN where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from core.errors import StoreError
from core.records import FloatArray, ScoreMatrix, Unscored
from core.store.codec import Packed, pack, unpack
from core.store.database import Database
from core.store.patience import Part
from core.store.rows import CriteriaScores, StepRow
from core.store.schema import documents, goldens, runs, scores, steps


@dataclass(frozen=True, slots=True)
class _Reasons:
    unscored: tuple[Unscored, ...]


class Results(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────

    def step(self, run_id: str, number: int) -> StepRow | None:
        """The stored answer to step `number`, or None."""
        query = sa.select(steps).where(steps.c.run_id == run_id, steps.c.number == number)
        with self._db.read() as connection:
            found = connection.execute(query).one_or_none()
        return None if found is None else StepRow(found.number, found.digest, Packed(found.body, found.blob))

    def put_step(self, run_id: str, step: StepRow) -> None:
        """Store an answer; one that is there already stays (the first answer counts)."""
        with self._db.write() as connection:
            row = {
                **{"run_id": run_id, "number": step.number, "digest": step.digest},
                **{"body": step.answer.body, "blob": step.answer.blob, "created_at": self._db.now(connection)},
            }
            connection.execute(self._db.insert_new(steps), row)

    def n_steps(self, run_id: str) -> int:
        with self._db.read() as connection:
            query = sa.select(sa.func.count()).select_from(steps).where(steps.c.run_id == run_id)
            return int(connection.execute(query).scalar_one())

    # ── documents ────────────────────────────────────────────────────────────────────────────────────────────

    def document(self, run_id: str, name: str) -> Packed | None:
        """The run's document of that name, or None."""
        query = sa.select(documents.c.body, documents.c.blob).where(documents.c.run_id == run_id)
        with self._db.read() as connection:
            found = connection.execute(query.where(documents.c.name == name)).one_or_none()
        return None if found is None else Packed(found.body, found.blob)

    def put_document(self, run_id: str, name: str, document: Packed) -> None:
        """Store or overwrite; a screen that polls the run's version sees it."""
        with self._db.write() as connection:
            row = {"run_id": run_id, "name": name, "body": document.body, "blob": document.blob}
            connection.execute(self._db.insert_or_replace(documents), row)
            bump = sa.update(runs).where(runs.c.run_id == run_id).values(version=runs.c.version + 1)
            connection.execute(bump)

    # ── scores ───────────────────────────────────────────────────────────────────────────────────────────────

    def add_scores(self, run_id: str, new: Sequence[CriteriaScores]) -> None:
        """Write scores over those at the same positions; a repetition changes nothing."""
        with self._db.write() as connection:
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
