"""One batch of items: scored, and written as lines of the output."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from core.export import CalibratedJudge, verdict_row
from core.export.calibrated_judge import in_order, lacking_parts
from core.records import Item, Unscored, Verdict
from core.spreadsheets import safe_cell

Form = Literal["jsonl", "csv"]
COLUMNS = ("item_id", "score", "calibrated", "n_read", "n_unread", "reason", "detail", "explanation", "mark")
"""Of a CSV output; what an item has none of is an empty cell."""

_WHOLE = Item("", "t", source="s", context="c", references=("r",))


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of the output, and what they count up to; `reasons` say why items are unscored."""

    text: str
    n_items: int
    n_scored: int
    reasons: Mapping[str, int] = field(default_factory=dict)


def form_of(out: Path) -> Form:
    """CSV where the name ends so, else JSON lines."""
    return "csv" if out.suffix.lower() == ".csv" else "jsonl"


def header_of(form: Form) -> str:
    """What stands before the first verdict."""
    return ",".join(COLUMNS) + "\n" if form == "csv" else ""


def score_batch(judge: CalibratedJudge, items: Sequence[Item], *, explain: bool, form: Form) -> Batch:
    """Score `items` and write them.  An item's line is the same in whatever batch it comes."""
    # An item with every part keeps the check from refusing a batch of which no item happens to have one.
    lacking = lacking_parts([*items, _WHOLE], judge.needs, judge.task)
    usable = [item for item in items if item.item_id not in lacking]
    scored = judge.score(usable, explain=explain) if usable else []
    return written(in_order(items, scored, lacking), judge.marks, form)


def written(verdicts: Sequence[Verdict], marks: Sequence[str], form: Form) -> Batch:
    """`verdicts` as lines; `marks` stand in each, under "mark"."""
    mark = {"mark": "; ".join(marks)} if marks else {}
    rows = [verdict_row(verdict) | mark for verdict in verdicts]
    reasons: Counter[str] = Counter(verdict.reason for verdict in verdicts if isinstance(verdict, Unscored))
    text = _csv(rows) if form == "csv" else "".join(f"{_json(row)}\n" for row in rows)
    return Batch(text, len(rows), len(rows) - reasons.total(), dict(reasons))


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False)


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([safe_cell(row.get(name)) for name in COLUMNS] for row in rows)
    return out.getvalue()
