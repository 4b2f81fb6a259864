"""A judge's scores, and the reasons for missing scores.

A `Reading` is the rating in one reply. `mean_verdict` combines all readings of an item into a `Scored`, or into an
`Unscored` if no reading has a rating. `Verdicts` are a judge's results with one criteria text, and `Scores` its results
with several criteria texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from core.records import (
    Criteria,
    FloatArray,
    Item,
    Scored,
    ScoreMatrix,
    Unscored,
    UnscoredReason,
    Usage,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The rating read from one reply: a number on the scale and its position in the reply, or None and the reason.

    `detail` explains the reason in a sentence.
    """

    value: float | None
    reason: UnscoredReason | None = None
    span: tuple[int, int] | None = None
    detail: str = ""


def mean_verdict(
    item_id: str, readings: Sequence[Reading], *, explanation: str = "", raw: tuple[str, ...] = ()
) -> Verdict:
    """Average the readings of one item.

    If no reading has a rating, the result is Unscored with the first reason, or "empty" if there are no readings.
    """
    values = [reading.value for reading in readings if reading.value is not None]
    if not values:
        first = readings[0] if readings else Reading(None, "empty")
        return Unscored(item_id, first.reason or "no verdict", first.detail, raw)
    mean = sum(values) / len(values)
    return Scored(item_id, mean, explanation, raw, n_read=len(values), n_unread=len(readings) - len(values))


class Verdicts(tuple[Verdict, ...]):
    """The results of a judge, in the order of the items."""

    @classmethod
    def of_scores(cls, scores: Mapping[str, float]) -> Verdicts:
        """Make verdicts from a mapping of item ids to scores. NaN becomes Unscored ("no verdict")."""
        return cls(
            Unscored(item_id, "no verdict") if math.isnan(score) else Scored(item_id, float(score))
            for item_id, score in scores.items()
        )

    @cached_property
    def values(self) -> FloatArray:
        """Scores (n,) float64 in the order of the verdicts, NaN = unscored."""
        return _numbers([verdict.value if isinstance(verdict, Scored) else None for verdict in self])

    @cached_property
    def mapped(self) -> FloatArray | None:
        """Scores (n,) mapped to the raters' scale, NaN = unscored; None unless all scores are mapped."""
        mapped = [verdict.calibrated for verdict in self if isinstance(verdict, Scored)]
        if not mapped or None in mapped:
            return None
        return _numbers([verdict.calibrated if isinstance(verdict, Scored) else None for verdict in self])

    @cached_property
    def by_id(self) -> Mapping[str, Verdict]:
        return {verdict.item_id: verdict for verdict in self}

    @cached_property
    def unscored(self) -> tuple[Unscored, ...]:
        return tuple(verdict for verdict in self if isinstance(verdict, Unscored))

    @property
    def turned(self) -> FloatArray | None:
        """Scores (n,) of pairs with text B first, inverted as in `Scored`. NaN if unknown; None if all are unknown."""
        turned = [verdict.turned if isinstance(verdict, Scored) else None for verdict in self]
        return _numbers(turned) if any(value is not None for value in turned) else None

    def of_items(self, item_ids: Sequence[str]) -> Verdicts:
        """Return the verdicts in the order of `item_ids`. An item without a verdict becomes Unscored."""
        return Verdicts(self.by_id.get(item_id) or Unscored(item_id, "no verdict") for item_id in item_ids)

    def aligned(self, item_ids: Sequence[str]) -> FloatArray:
        """Return scores (n_items,) in the order of `item_ids`, NaN for an item without a verdict or score."""
        return self.of_items(item_ids).values


def _numbers(values: Sequence[float | None]) -> FloatArray:
    """Convert values to float64 with NaN for None."""
    return np.array(values, dtype=np.float64)


@dataclass(frozen=True)
class Scores(ScoreMatrix):
    """Scores for all criteria and items, and one verdict per item if explanations were requested.

    Attributes:
        explained: For each item, the first readable verdict in the order of the criteria, or Unscored if no verdict is
            readable. Empty if no explanations were requested.
        said: Criteria id → item id → explanation.
        clauses: Criteria id → item id → `Scored.clauses`, for criteria whose clauses were rated separately.
    """

    explained: Verdicts = field(default_factory=Verdicts)
    said: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    clauses: Mapping[str, Mapping[str, tuple[tuple[float, float | None], ...]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        items: Sequence[Item],
        criteria: Sequence[Criteria],
        verdicts: Sequence[Sequence[Verdict]],
        usage: Usage,
        *,
        explain: bool,
    ) -> Scores:
        """Make scores from `verdicts`, which has one row per criteria text; each row is in the order of `items`."""
        rows = [Verdicts(row) for row in verdicts]
        first_read = (
            next((verdict for verdict in of_item if isinstance(verdict, Scored)), of_item[0])
            for of_item in (zip(*rows, strict=True) if explain else ())
        )
        keys, shape = tuple(each.criteria_id for each in criteria), (len(criteria), len(items))
        turned = [row.turned for row in rows]
        known = [np.full(len(items), np.nan) if row is None else row for row in turned]
        return cls(
            keys,
            tuple(item.item_id for item in items),
            np.array([row.values for row in rows]).reshape(shape),
            {key: row.unscored for key, row in zip(keys, rows, strict=True) if row.unscored},
            len(criteria) * len(items),
            usage,
            None if all(row is None for row in turned) else np.array(known).reshape(shape),
            Verdicts(first_read),
            {
                key: {verdict.item_id: verdict.explanation for verdict in row if isinstance(verdict, Scored)}
                for key, row in zip(keys, rows, strict=True)
            },
            {
                key: {each.item_id: each.clauses for each in row if isinstance(each, Scored) and each.clauses}
                for key, row in zip(keys, rows, strict=True)
            },
        )


# ── verdict files ────────────────────────────────────────────────────────────────────────────────────────────────

CALIBRATED, CALIBRATION_ITEM = "calibrated", "calibration_item"
"""Columns of verdict files: score on the raters' scale, and whether the label was used to choose or fit the judge."""
BY_ORDER = ("score_a_first", "score_b_first")
"""Columns with the score of a pair for each order of its texts; a high score prefers text B in both."""


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """Return one line of a verdict file.

    A pair judged in both orders also has the score of each order. `CALIBRATION_ITEM` is in the line only if the item's
    label was used to choose or fit the judge.
    """
    row: dict[str, Any] = {"item_id": verdict.item_id}
    if isinstance(verdict, Unscored):
        row |= {"score": None, "reason": verdict.reason, "detail": verdict.detail, "raw": list(verdict.raw)}
    else:
        row |= {
            "score": verdict.value,
            CALIBRATED: verdict.calibrated,
            "n_read": verdict.n_read,
            "n_unread": verdict.n_unread,
            "explanation": verdict.explanation,
        }
    if verdict.calibration_item:
        row[CALIBRATION_ITEM] = True
    if isinstance(verdict, Scored) and verdict.turned is not None:
        row |= zip(BY_ORDER, (2.0 * verdict.value - verdict.turned, verdict.turned), strict=True)
    return row


def verdict_lines(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Yield the lines of a verdict file, including the line breaks."""
    for verdict in verdicts:
        yield json.dumps(verdict_row(verdict), ensure_ascii=False, allow_nan=False) + "\n"
