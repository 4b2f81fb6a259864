"""What runs leave behind: named documents (snapshot, judge, result) and scores.

Scores are stored per run and criteria as one float64 BLOB over all items of the golden set, in the golden set's order,
NaN where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa

from core.errors import LostRunError, StoreError
from core.records import FloatArray, ScoreMatrix, Unscored
from core.store.codec import Packed, pack, unpack
from core.store.database import StorePart, Transaction
from core.store.schema import documents, goldens, runs, scores

T = TypeVar("T")
SNAPSHOT = "standing"
"""Name of the document with the latest snapshot: a leaderboard, or a grid of styles."""
JUDGE = "judge"
"""Name of the document with the judge made ready (`core.projects.run_work.JudgeState`)."""
RESULT = "result"
"""Name of the document with the run's result (`core.projects.run_kinds`)."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why items have no score."""

    unscored: tuple[Unscored, ...]


class Results(StorePart):
    def document(self, run_id: str, name: str) -> Packed | None:
        """The run's document of that name as it is stored, or None."""
        row = self._db.row(sa.select(documents).filter_by(run_id=run_id, name=name))
        return None if row is None else Packed(row.body, row.blob)

    def read(self, run_id: str, name: str, kind: type[T]) -> T | None:
        """The record of type `kind` in the run's document of that name, or None."""
        stored = self.document(run_id, name)
        return None if stored is None else unpack(kind, stored)

    def put_document(self, run_id: str, name: str, document: object, *, attempt: int | None = None) -> None:
        """Store a record or overwrite the one there; a screen that polls the run's version sees it.

        LostRunError, and nothing is stored, where the run is no longer running in this `attempt`.
        """
        packed = document if isinstance(document, Packed) else pack(document)
        with self._db.write() as transaction:
            row = {"run_id": run_id, "name": name, "body": packed.body, "blob": packed.blob}
            transaction.upsert(documents, row)
            _touch(transaction, run_id, attempt)

    def add_scores(
        self, run_id: str, positions: Sequence[int], new: ScoreMatrix, *, attempt: int | None = None
    ) -> None:
        """Write scores of the items at `positions` of the golden set, the columns of `new`, over those there already.

        A repetition changes nothing.  `attempt` as above.
        """
        with self._db.write() as transaction:
            _touch(transaction, run_id, attempt)
            query = sa.select(goldens.c.n_items).join(runs, runs.c.golden_id == goldens.c.golden_id)
            n_items = int(transaction.execute(query.where(runs.c.run_id == run_id)).scalar_one())
            there = {row.criteria_id: row for row in transaction.rows(_scores_of(run_id, new.criteria_ids))}
            rows = []
            for k, criteria_id in enumerate(new.criteria_ids):
                row = there.get(criteria_id)
                values = np.full((2, n_items), np.nan) if row is None else _values(row.blob, n_items)
                values[0, list(positions)] = new.values[k]
                if new.turned is not None:
                    values[1, list(positions)] = new.turned[k]
                stored = values[0] if np.isnan(values[1]).all() else values
                reasons = {} if row is None else {u.item_id: u for u in unpack(Reasons, row.body).unscored}
                reasons |= {unscored.item_id: unscored for unscored in new.unscored.get(criteria_id, ())}
                body, blob = pack(Reasons(tuple(reasons.values()))).body, stored.astype("<f8").tobytes()
                rows.append({"run_id": run_id, "criteria_id": criteria_id, "body": body, "blob": blob})
            transaction.upsert(scores, rows)

    def scores(self, run_id: str, item_ids: Sequence[str], criteria_ids: Sequence[str] | None = None) -> ScoreMatrix:
        """(n_criteria, n_items) in the golden set's order, of all criteria the run scored or of those named.

        `item_ids` are the golden set's.  Criteria without any score are absent.
        """
        rows = {row.criteria_id: row for row in self._db.rows(_scores_of(run_id, criteria_ids))}
        names = [name for name in (rows if criteria_ids is None else criteria_ids) if name in rows]
        both = np.array([_values(rows[name].blob, len(item_ids)) for name in names], dtype=np.float64)
        values, turned = both.reshape(len(names), 2, len(item_ids)).transpose(1, 0, 2)
        reasons = {name: unpack(Reasons, rows[name].body).unscored for name in names}
        return ScoreMatrix(
            tuple(names),
            tuple(item_ids),
            values,
            {name: why for name, why in reasons.items() if why},
            turned=None if np.isnan(turned).all() else turned,
        )


def _touch(transaction: Transaction, run_id: str, attempt: int | None) -> None:
    change = sa.update(runs).filter_by(run_id=run_id).values(version=runs.c.version + 1)
    if attempt is not None:
        change = change.filter_by(attempt=attempt, status="running")
    if transaction.execute(change).rowcount != 1 and attempt is not None:
        raise LostRunError("Another worker has the run.")


def _scores_of(run_id: str, criteria_ids: Sequence[str] | None) -> sa.Select[Any]:
    query = sa.select(scores).filter_by(run_id=run_id).order_by(scores.c.criteria_id)
    return query if criteria_ids is None else query.where(scores.c.criteria_id.in_(criteria_ids))


def _values(blob: bytes, n_items: int) -> FloatArray:
    """(2, n_items) scores, and those of pairs the other way round, which are stored where there are any."""
    values = np.frombuffer(blob, dtype="<f8").astype(np.float64)
    if len(values) not in (n_items, 2 * n_items):
        raise StoreError(f"Stored scores are of {len(values)} items and the golden set has {n_items}.")
    return np.concatenate([values, np.full(2 * n_items - len(values), np.nan)]).reshape(2, n_items)
