"""Rows → what one row says about one item, by the columns that were understood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from core.data.cells import read_id, shown
from core.data.fields import folded
from core.data.verdict_files.fields import Columns
from core.data.verdict_files.load import Recording
from core.data.verdict_files.replies import Reply, replies_in, text_of
from core.errors import GoldenError

__all__ = ["Entry", "Reply", "entries"]

_LONGEST_ID = 500


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: `row` counts data rows from 1; `replies` None where the row has no such cell; `score` as it came.

    `has_score` tells an empty score (unscored) from a missing cell.  `sample` "" where no column numbers samples.
    """

    row: int
    item_id: str
    replies: tuple[Reply, ...] | None
    score: Any
    has_score: bool
    reason: str = ""
    sample: str = ""
    aspect: str = ""


def entries(recording: Recording, columns: Columns, aspect: str = "") -> Iterator[Entry]:
    """What each row says, in the file's order.

    Where a column names the aspect of each row, only the rows of `aspect` are told.  GoldenError without a column of
    item ids, and for a row whose id is missing or cannot be shown.
    """
    roles = columns.roles
    if "item_id" not in roles:
        raise GoldenError(
            f"there is no item_id; no column is named so, or id, custom_id and the like. There are "
            f"{', '.join(columns.names)[:300]}",
            file=recording.name,
            row=1,
        )
    id_column, reply_column, score_column = roles["item_id"], roles.get("replies", ""), roles.get("score", "")
    reason, sample, rated = roles.get("reason", ""), roles.get("sample", ""), roles.get("aspect", "")
    wanted = folded(aspect)
    for row, cells in enumerate(recording.rows, start=1):
        said = text_of(cells.get(rated)) if rated else ""
        if rated and wanted and folded(said) != wanted:
            continue
        yield Entry(
            row,
            _item_id(cells.get(id_column), recording.name, row, id_column),
            replies_in(cells[reply_column]) if reply_column in cells else None,
            cells.get(score_column) if score_column else None,
            score_column in cells,
            text_of(cells.get(reason)) if reason else "",
            read_id(cells.get(sample)) if sample else "",
            said,
        )


def _item_id(cell: Any, name: str, row: int, column: str) -> str:
    item_id = "" if isinstance(cell, bool | list | dict) else read_id(cell)
    if not item_id:
        raise GoldenError("there is no item_id", file=name, row=row, column=column)
    if not item_id.isprintable() or len(item_id) > _LONGEST_ID:
        raise GoldenError(f"the item_id {shown(item_id)} cannot be shown", file=name, row=row, column=column)
    return item_id
