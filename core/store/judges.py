"""Judges of a project: their scores over all items of a golden set, and the replies behind them.

A judge is stored under a hash of what it gave, so that the same file brought in twice, or a run that finishes twice,
makes one judge.  Replies are bulky and rarely looked at: they lie compressed beside the scores and are read on demand.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sqlalchemy as sa

from core.errors import NotFoundError, StoreError
from core.kept import JudgeEntry, moment
from core.records import JudgeScores, content_digest
from core.store.codec import Packed, pack, unpack
from core.store.database import Database
from core.store.patience import Part
from core.store.schema import goldens, judges


class Judges(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(
        self,
        project_id: str,
        golden_id: str,
        judge: JudgeScores,
        replies: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """Enter a judge; one with the same scores and kind stays as it is.  Returns its id.

        `replies` maps item id → replies as they came.  StoreError when the scores are not of this golden set's length.
        """
        judge_id = judge_id_of(golden_id, judge)
        packed = pack(judge)
        with self._db.write() as connection:
            n_items = connection.execute(sa.select(goldens.c.n_items).where(goldens.c.golden_id == golden_id)).scalar()
            if n_items != judge.values.size:
                raise StoreError(f"The judge has {judge.values.size} scores and its golden set {n_items} items.")
            row = {
                **{"project_id": project_id, "judge_id": judge_id, "golden_id": golden_id, "aspect": judge.aspect},
                **{"name": judge.name, "body": packed.body, "blob": packed.blob},
                **{"replies": _packed_replies(replies), "created_at": self._db.now(connection)},
            }
            connection.execute(self._db.insert_new(judges), row)
        return judge_id

    def all(self, project_id: str, golden_id: str | None = None, aspect: str | None = None) -> list[JudgeEntry]:
        """The project's judges (of a golden set, of an aspect), oldest first."""
        query = _columns().where(judges.c.project_id == project_id)
        if golden_id is not None:
            query = query.where(judges.c.golden_id == golden_id)
        if aspect is not None:
            query = query.where(judges.c.aspect == aspect)
        with self._db.read() as connection:
            found = connection.execute(query.order_by(judges.c.created_at, judges.c.judge_id)).all()
        return [_row(one) for one in found]

    def get(self, project_id: str, judge_id: str) -> JudgeEntry:
        """NotFoundError for an unknown id."""
        with self._db.read() as connection:
            found = connection.execute(_columns().where(_is(project_id, judge_id))).one_or_none()
        if found is None:
            raise _unknown(judge_id)
        return _row(found)

    def replies(self, project_id: str, judge_id: str) -> dict[str, tuple[str, ...]]:
        """Item id → replies as they came; empty for a judge that brought none.  NotFoundError for an unknown id."""
        with self._db.read() as connection:
            found = connection.execute(sa.select(judges.c.replies).where(_is(project_id, judge_id))).one_or_none()
        if found is None:
            raise _unknown(judge_id)
        kept = {} if found.replies is None else json.loads(zlib.decompress(found.replies))
        return {item_id: tuple(texts) for item_id, texts in kept.items()}

    def rename(self, project_id: str, judge_id: str, name: str) -> None:
        """NotFoundError for an unknown id."""
        with self._db.write() as connection:
            changed = connection.execute(sa.update(judges).where(_is(project_id, judge_id)).values(name=name))
        if not changed.rowcount:
            raise _unknown(judge_id)

    def remove(self, project_id: str, judge_id: str) -> None:
        """Remove a judge; nothing happens when it is gone already."""
        with self._db.write() as connection:
            connection.execute(sa.delete(judges).where(_is(project_id, judge_id)))


def judge_id_of(golden_id: str, judge: JudgeScores) -> str:
    """``"j" + 12 hex digits`` of what the judge gave, its name left out: renaming does not make another judge."""
    scores = hashlib.sha256(np.ascontiguousarray(judge.values, dtype="<f8").tobytes()).hexdigest()
    body = [golden_id, judge.aspect, judge.kind, judge.run_id, judge.note, scores, list(judge.seen)]
    return "j" + content_digest("judge", body).split(":")[1][:12]


def _columns() -> sa.Select[Any]:
    return sa.select(*(column for column in judges.c if column.name != "replies"))


def _is(project_id: str, judge_id: str) -> sa.ColumnElement[bool]:
    return sa.and_(judges.c.project_id == project_id, judges.c.judge_id == judge_id)


def _row(found: sa.Row[Any]) -> JudgeEntry:
    judge = replace(unpack(JudgeScores, Packed(found.body, found.blob)), name=found.name)
    return JudgeEntry(found.judge_id, found.project_id, found.golden_id, judge, moment(found.created_at))


def _packed_replies(replies: Mapping[str, Sequence[str]] | None) -> bytes | None:
    if not replies:
        return None
    return zlib.compress(json.dumps({item_id: list(texts) for item_id, texts in replies.items()}).encode())


def _unknown(judge_id: str) -> NotFoundError:
    return NotFoundError(f"There is no judge {judge_id[:24]!r} in this project. It may have been removed.")
