"""The leaderboard as a record: rows, ceiling, items and tests, and their JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.comparison.pool import ItemPool
from core.records import Alignment, JudgeKind, Level, Scale, Statistic
from core.stats import AbsoluteErrors, BesidePeople, BinaryAgreement, PairwiseComparison, StepAgreement


@dataclass(frozen=True)
class Row:
    """One judge of the table; `place` is its place among the judges given.

    `alignment` is on the items of the comparison.  `errors`, `steps` and `binary` are None where scores do not mean
    points of the labels' scale, `scale_note` then says why; `binary` also where the scale has other than two steps.
    `people` sets the judge beside the people, both against the mean of the other raters; None without single ratings.
    `n_seen_used` counts items used whose labels the judge has seen (mode `all`): there its alignment flatters.
    `unscored` is reason → labelled items in reach without a score; `alone` what leaving out this judge brings back.
    """

    place: int
    name: str
    kind: JudgeKind
    note: str
    alignment: Alignment
    n_sources: int
    n_seen: int
    n_seen_used: int
    unscored: dict[str, int]
    alone: int
    calls_per_item: float | None
    errors: AbsoluteErrors | None
    steps: StepAgreement | None
    binary: BinaryAgreement | None
    scale_note: str = ""
    people: BesidePeople | None = None

    @property
    def n_unscored(self) -> int:
        return sum(self.unscored.values())

    def as_json(self) -> dict[str, Any]:
        """Everything of the row, null where undefined."""
        return {
            "judge": self.name,
            "kind": self.kind,
            "note": self.note or None,
            "alignment": self.alignment.as_json(),
            "n_sources": self.n_sources,
            "n_seen": self.n_seen,
            "n_seen_used": self.n_seen_used,
            "n_unscored": self.n_unscored,
            "unscored": self.unscored,
            "items_it_alone_costs": self.alone,
            "calls_per_item": self.calls_per_item,
            "errors": None if self.errors is None else self.errors.as_json(),
            "steps": None if self.steps is None else self.steps.as_json(),
            "binary": None if self.binary is None else self.binary.as_json(),
            "scale_note": self.scale_note or None,
            "beside_people": None if self.people is None else self.people.as_json(),
        }


@dataclass(frozen=True, slots=True)
class HumanCeiling:
    """One rater left out against the mean of the others, on the items of the comparison.

    `alignment` None (with `reason`) where the golden set holds no single ratings.
    """

    alignment: Alignment | None
    n_raters: int = 0
    panel: str = ""
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "leave_one_out": None if self.alignment is None else self.alignment.as_json(),
            "n_raters": self.n_raters,
            "panel": self.panel or None,
            "reason": self.reason or None,
        }


@dataclass(frozen=True)
class Leaderboard:
    """Judges best first, the undefined last.

    `pairwise` is in the order of `rows`; None where nothing is common to them (mode `own`, no common item, one
    judge).  `problem` says why there is nothing to compare on; empty otherwise.
    """

    golden: str
    aspect: str
    scale: Scale
    statistic: Statistic
    level: Level
    rows: tuple[Row, ...]
    pairwise: PairwiseComparison | None
    ceiling: HumanCeiling
    pool: ItemPool
    n_sources: int
    n_systems: int
    problem: str = ""

    @property
    def comparable(self) -> bool:
        """Whether all rows rest on the same items."""
        return self.pool.mode != "own" and not self.problem

    @property
    def binary(self) -> bool:
        """Whether the labels' scale has two steps."""
        return two_steps(self.scale)

    @property
    def williams_applies(self) -> bool:
        """Williams' test is about Pearson at dataset level alone."""
        return self.statistic == "pearson" and self.level == "dataset"

    def as_json(self) -> dict[str, Any]:
        """The whole table with its items, ceiling and tests."""
        return {
            "golden": self.golden,
            "aspect": self.aspect,
            "statistic": self.statistic,
            "level": self.level,
            "items": self.pool.mode,
            "n_labelled": self.pool.n_labelled,
            "n_common": self.pool.n_common,
            "n_lost_to_seen_labels": self.pool.n_seen,
            "n_lost_to_missing_scores": self.pool.n_unscored,
            "n_sources": self.n_sources,
            "n_systems": self.n_systems,
            "problem": self.problem or None,
            "ceiling": self.ceiling.as_json(),
            "judges": [row.as_json() for row in self.rows],
            "pairs": [] if self.pairwise is None else _pairs_json(self, self.pairwise),
        }


def two_steps(scale: Scale) -> bool:
    """Whether labels on `scale` are of two classes."""
    return scale.step is not None and scale.high - scale.low == scale.step


def _pairs_json(board: Leaderboard, pairwise: PairwiseComparison) -> list[dict[str, Any]]:
    told = []
    for i, first in enumerate(board.rows):
        for j, second in enumerate(board.rows[i + 1 :], i + 1):
            difference = pairwise.pair(i, j).as_json()
            holm, williams = float(pairwise.p_holm[i, j]), float(pairwise.williams_p_holm[i, j])
            told.append(
                {"first": first.name, "second": second.name, "difference": difference}
                | {"p_holm": None if np.isnan(holm) else holm}
                | ({"williams_p_holm": None if np.isnan(williams) else williams} if board.williams_applies else {})
            )
    return told
