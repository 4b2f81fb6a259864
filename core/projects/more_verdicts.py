"""Verdicts on items beyond a golden set, in a file that somebody sent."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from core.comparison.corrected_means import MoreVerdicts
from core.data.verdict_imports import ScoredRows, read_scored
from core.errors import GoldenError
from core.records import FloatArray, GoldenSet, IntArray, JudgeScores
from core.stats.items import BoolArray

_ALIKE = 1e-6

_LEAST_ON_A_LINE = 3
"""Different scores on common items that have to lie on one line to be the judge's on another scale: two always do."""


@dataclass(frozen=True)
class SentVerdicts:
    """A file of verdicts as it was sent."""

    name: str
    data: bytes = field(repr=False)


def read_more_verdicts(sent: SentVerdicts, golden: GoldenSet, judge: JudgeScores) -> MoreVerdicts:
    """The verdicts of `judge` in a file on items that `golden` has not; those on its own items have to be the same.

    Where a column names the aspect of each row, those of the judge's count.  A judge that was brought in may have been
    mapped from another scale, or turned: its file is put on its scale as well.  GoldenError for a file that cannot be
    read, names no systems, holds nothing new, or is of another judge.
    """
    name = sent.name
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"verdicts{Path(name).suffix.lower()}"
        place.write_bytes(sent.data)
        rows = read_scored(place, judge.aspect)
    if rows is None:
        raise GoldenError("This is no table of verdicts: columns item_id, score and system_id are needed.", file=name)
    if not rows.systems:
        raise GoldenError("No column says which system wrote each item: add system_id to the verdicts.", file=name)
    own = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    places = np.array([own.get(item_id, -1) for item_id in rows.item_ids], dtype=np.intp)
    scores = _on_scale_of(judge, rows.scores, places, name)
    new = np.flatnonzero(places < 0).tolist()
    if not new:
        raise GoldenError("All of these verdicts are on items of the golden set, which are counted already.", file=name)
    sources = [rows.sources[k] for k in new] if rows.sources else []
    more = ScoredRows([rows.item_ids[k] for k in new], scores[new], [rows.systems[k] for k in new], sources)
    return MoreVerdicts(more, hashlib.sha256(sent.data).hexdigest(), rescaled=scores is not rows.scores)


def _on_scale_of(judge: JudgeScores, scores: FloatArray, places: IntArray, name: str) -> FloatArray:
    """`scores` (n,) as they are where those on common items are the judge's, else by the straight line that makes them.

    `places` (n,) are positions in the golden set, -1 for none.  GoldenError where no line does.
    """
    common = np.flatnonzero(places >= 0)
    kept, sent = judge.upward[places[common]], scores[common]
    if not (differ := _differ(kept, sent)).any():
        return scores
    both = ~np.isnan(kept) & ~np.isnan(sent)
    if judge.kind == "imported" and np.unique(sent[both]).size >= _LEAST_ON_A_LINE:
        slope, intercept = np.polyfit(sent[both], kept[both], 1)
        if not _differ(kept, slope * sent + intercept).any():
            return np.asarray(slope * scores + intercept, dtype=np.float64)
    raise GoldenError(
        f"{int(differ.sum()):,} of the {common.size:,} verdicts on items of the golden set differ from those of "
        f"{judge.name}: the file is of another judge, or of another version of it.",
        file=name,
    )


def _differ(kept: FloatArray, sent: FloatArray) -> BoolArray:
    return ~(np.isclose(kept, sent, atol=_ALIKE) | (np.isnan(kept) & np.isnan(sent)))
