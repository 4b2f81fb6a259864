"""The leaderboard as a record: its JSON, its table for a spreadsheet, and what it says in sentences.

The sentences can be read out in a review: which judge agrees best, and what is only chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from core.comparison.common_items import ItemPool, JudgeCost
from core.json_form import json_fields
from core.records import Alignment, Interval, JudgeKind, Measure, Scale
from core.spreadsheets import Cell, csv_text
from core.stats import (
    ALPHA,
    LEAST_SOURCES,
    NO_SINGLE_RATINGS,
    NO_TEST,
    SHORT,
    SHORT_BELOW,
    TOO_FEW,
    BesidePeople,
    OnScale,
    PairwiseComparison,
    beside_people_words,
    margin_words,
)
from core.stats.alignment import RegressionBar
from core.stats.claims import no_interval_words
from core.wording import number

_MOST_NAMED = 4


@dataclass(frozen=True)
class Row:
    """One judge of the table; `place` is its place among the judges given.

    `alignment` is on the items of the comparison; so is `on_scale`, empty but for its note where the judge's scores do
    not mean points of the labels' scale.  `people` sets the judge beside the people, both against the mean of the other
    raters; None without single ratings.
    """

    place: int
    name: str
    kind: JudgeKind
    note: str
    alignment: Alignment
    n_sources: int
    cost: JudgeCost
    calls_per_item: float | None
    on_scale: OnScale
    people: BesidePeople | None = None

    def as_json(self) -> dict[str, Any]:
        """Everything of the row, null where undefined."""
        return {
            "judge": self.name,
            "kind": self.kind,
            "note": self.note or None,
            "alignment": self.alignment.as_json(),
            "n_sources": self.n_sources,
            "n_seen": self.cost.n_seen,
            "unscored": self.cost.unscored,
            "calls_per_item": self.calls_per_item,
            **json_fields(self.on_scale, but=("note",)),
            "scale_note": self.on_scale.note or None,
            "n_unscored": self.cost.n_unscored,
            "items_it_alone_costs": self.cost.alone,
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
        body = json_fields(self)
        return {"leave_one_out": body.pop("alignment")} | body


@dataclass(frozen=True)
class Leaderboard:
    """Judges best first, the undefined last.

    `pairwise` is in the order of `rows`; None without a common item, and for one judge alone.  `problem` says
    why there is nothing to compare on; empty otherwise.  `planned` are the places of the two judges whose comparison
    was decided on beforehand: its p is its own, not corrected over the table.  `bar` is what a plain regression reaches
    on the same items, beside each row; None where none could be fitted.
    """

    golden: str
    aspect: str
    scale: Scale
    measure: Measure
    rows: tuple[Row, ...]
    pairwise: PairwiseComparison | None
    ceiling: HumanCeiling
    pool: ItemPool
    n_sources: int
    n_systems: int
    problem: str = ""
    planned: tuple[int, int] | None = None
    bar: RegressionBar | None = None

    @property
    def binary(self) -> bool:
        """Whether the labels' scale has two steps."""
        return self.scale.two_steps

    @property
    def williams_applies(self) -> bool:
        """Williams' test is about Pearson at dataset level alone."""
        return self.measure == Measure("pearson", "dataset")

    def as_json(self) -> dict[str, Any]:
        """The whole table with its items, ceiling and tests."""
        return {
            "golden": self.golden,
            "aspect": self.aspect,
            "statistic": self.measure.statistic,
            "level": self.measure.level,
            "n_labelled": self.pool.n_labelled,
            "n_common": self.pool.n_common,
            "n_lost_to_seen_labels": self.pool.n_seen,
            "n_lost_to_missing_scores": self.pool.n_unscored,
            "n_sources": self.n_sources,
            "n_systems": self.n_systems,
            "problem": self.problem or None,
            "ceiling": self.ceiling.as_json(),
            "judges": [row.as_json() for row in self.rows],
            "bar": None if self.bar is None else self.bar.as_json(),
            "pairs": [] if self.pairwise is None else self._pairs(self.pairwise),
        }

    def _pairs(self, pairwise: PairwiseComparison) -> list[dict[str, Any]]:
        pairs = []
        for i, j in combinations(range(len(self.rows)), 2):
            pair: dict[str, Any] = {"first": self.rows[i].name, "second": self.rows[j].name}
            pair |= {"difference": pairwise.pair(i, j).as_json(), "p_holm": _known(pairwise.p_holm[i, j])}
            pair["planned"] = {self.rows[i].place, self.rows[j].place} == set(self.planned or ())
            if self.williams_applies:
                pair["williams_p_holm"] = _known(pairwise.williams_p_holm[i, j])
            pairs.append(pair)
        return pairs


def _known(p: float) -> float | None:
    return None if np.isnan(p) else float(p)


# ── for a spreadsheet ────────────────────────────────────────────────────────────────────────────────────────


def leaderboard_csv(board: Leaderboard) -> str:
    """A header and a line a judge; undefined is an empty cell.  Names come from users and models: none can run."""
    rows = [_cells(board, row) for row in board.rows]
    if board.bar is not None:
        rows.append(dict.fromkeys(rows[0]) | {"judge": board.bar.name} | _aligned_cells(board.bar.alignment))
    return csv_text(list(rows[0]), [list(row.values()) for row in rows])


def _aligned_cells(aligned: Alignment) -> dict[str, Cell]:
    low, high = _ends(aligned.interval)
    return {
        "statistic": aligned.statistic,
        "level": aligned.level,
        "alignment": aligned.value,
        "interval_low": low,
        "interval_high": high,
        "n": aligned.n,
        "n_groups": aligned.n_groups,
        "groups_left_out": aligned.n_left_out,
    }


def _cells(board: Leaderboard, row: Row) -> dict[str, Cell]:
    """Column → cell."""
    aligned, cost, points, people = row.alignment, row.cost, row.on_scale, row.people
    people_low, people_high = _ends(people.interval if people else None)
    return {
        "judge": row.name,
        "kind": row.kind,
        **_aligned_cells(aligned),
        "n_unscored": cost.n_unscored,
        "unscored": "; ".join(f"{count} {reason}" for reason, count in cost.unscored.items()),
        "n_seen": cost.n_seen,
        "calls_per_item": row.calls_per_item,
        **{name: getattr(points.errors, name, None) for name in ("mae", "bias")},
        **{name: getattr(points.steps, name, None) for name in ("exact", "adjacent", "quadratic_kappa")},
        **{name: getattr(points.binary, name, None) for name in ("precision", "recall", "f1", "kappa")},
        "reason": aligned.reason or points.note,
        "note": row.note,
        "judge_without_one_rater": people.judge.value if people else None,
        "person_without_one_rater": people.person.value if people else None,
        "beside_people": people.difference if people else None,
        "beside_people_low": people_low,
        "beside_people_high": people_high,
        "beside_people_p": people.p if people else None,
        "beside_people_standing": people.standing if people else None,
        "beside_people_raters": people.n_raters if people else None,
    }


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)


# ── in sentences ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Finding:
    """`headline` is the result in one sentence, `basis` what it was measured by and on, `details` what belongs beside
    it, `people` how the judge compares with a rater, `cautions` what makes it weaker than it looks.
    """

    headline: str
    details: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    basis: str = ""
    people: str = ""


def finding(board: Leaderboard, measure: str) -> Finding:
    """The result of `board` in words; `measure` names statistic and level ("Spearman rho, sample level")."""
    if board.problem:
        return Finding("Nothing can be compared yet.", (board.problem,), ())
    defined = [row for row in board.rows if row.alignment.value is not None]
    if not defined:
        reasons = tuple(f"{row.name}: {row.alignment.reason}." for row in board.rows)
        return Finding(f"No judge has a defined {measure} here.", reasons, ())
    best = defined[0]
    verb = "has the highest agreement with raters" if len(board.rows) > 1 else "agrees with raters"
    return Finding(
        f"{best.name} {verb}: {number(best.alignment.value)}.",
        (*_standing(board, len(defined)), *bar_words(board, 0)),
        tuple(cautions(board, best)),
        basis_words(board, best, measure),
        people_words(board, best, measure, best.name),
    )


def in_short(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and 3 others`."""
    if len(names) > _MOST_NAMED:
        return f"{', '.join(names[: _MOST_NAMED - 1])} and {len(names) - _MOST_NAMED + 1} others"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def basis_words(board: Leaderboard, row: Row, measure: str) -> str:
    """What the figure of `row` was measured by and on, with its interval."""
    interval = row.alignment.interval
    ends = "" if interval is None else f", 95 % interval {number(interval.low)} to {number(interval.high)}"
    return f"{measure}, {items_of(board)}{ends}."


def items_of(board: Leaderboard) -> str:
    """`on 60 items from 10 sources whose labels none of these judges has seen`."""
    pool = board.pool
    whole = f"on {pool.n_common:,} items from {board.n_sources:,} source{'' if board.n_sources == 1 else 's'}"
    whom = "none of these judges has seen" if len(board.rows) > 1 else "it has not seen"
    return f"{whole} whose labels {whom}"


def _standing(board: Leaderboard, n_defined: int) -> list[str]:
    """Judges that the best one is significantly better than, does not differ from, or has no test with."""
    if board.pairwise is None or n_defined < 2:
        return []
    p = board.pairwise.p_holm[0]
    better = [board.rows[k].name for k in range(1, n_defined) if p[k] <= ALPHA]
    alike = [board.rows[k].name for k in range(1, n_defined) if not np.isnan(p[k]) and p[k] > ALPHA]
    untested = [board.rows[k].name for k in range(1, n_defined) if np.isnan(p[k])]
    parts = []
    if better:
        parts.append(f"significantly better than {in_short(better)}")
    if alike:
        parts.append(f"not significantly different from {in_short(alike)}")
    sentences = []
    if parts:
        sentences.append(f"It is {', and '.join(parts)} (paired test over sources, Holm-corrected at {ALPHA:g}).")
    if untested:
        sentences.append(f"Its difference from {in_short(untested)} has {NO_TEST}.")
    return sentences


def bar_words(board: Leaderboard, at: int) -> list[str]:
    """Whether the judge of row `at` clears the bar, in a sentence; none without a bar."""
    words = board.bar.words(at, criteria=board.rows[at].kind == "calibrated") if board.bar is not None else ""
    return [words] if words else []


def people_words(board: Leaderboard, row: Row, measure: str, name: str) -> str:
    """Say how a judge called `name` compares with a rater, against the same targets and no stronger than it may."""
    if row.people is None:
        return f"How well raters agree with each other is not known, {NO_SINGLE_RATINGS}: {board.ceiling.reason}"
    words = beside_people_words(row.people, measure, judge=name)
    return f"{words} {margin_words()}" if row.people.standing == "level" else words


def cautions(board: Leaderboard, best: Row) -> list[str]:
    """What makes a finding about the judge `best` weaker than it looks."""
    sentences = []
    interval = best.alignment.interval
    if interval is None:
        sentences.append(no_interval_words(best.alignment))
    elif interval.low <= 0.0 <= interval.high:
        sentences.append("Its interval holds 0, so even this judge may agree with raters only by chance.")
    if 2 <= board.n_sources < LEAST_SOURCES:
        sentences.append(
            f"Only {board.n_sources} sources: intervals are wide, and no difference is tested ({TOO_FEW})."
        )
    if board.measure.level == "system":
        sentences.append(f"System level rests on {best.alignment.n} systems; a difference needs to be large to show.")
        if board.n_sources < SHORT_BELOW:
            sentences.append(f"The interval holds for these systems, and is {SHORT}.")
    return [*sentences, *_undefined(board)]


def _undefined(board: Leaderboard) -> list[str]:
    return [
        f"{row.name} has no alignment: {row.alignment.reason}."
        for row in board.rows
        if row.alignment.value is None and not board.problem
    ]
