"""What a leaderboard says, in sentences that can be read out in a meeting: who stands highest, what is only chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.comparison.board import Leaderboard, Row
from core.records import Alignment
from core.stats import (
    ALPHA,
    LEAST_SOURCES,
    NO_SINGLE_RATINGS,
    NO_TEST,
    SHORT,
    SHORT_BELOW,
    TOO_FEW,
    beside_people_words,
    margin_words,
)

MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """`headline` is the result, `details` what belongs beside it, `cautions` what makes it weaker than it looks."""

    headline: str
    details: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def finding(board: Leaderboard, measure: str) -> Finding:
    """The result of `board` in words; `measure` names statistic and level ("Spearman rho, sample level")."""
    if board.problem:
        return Finding("Nothing can be compared yet.", (board.problem,), ())
    defined = [row for row in board.rows if row.alignment.value is not None]
    if not defined:
        reasons = tuple(f"{row.name}: {row.alignment.reason}." for row in board.rows)
        return Finding(f"No judge has a defined {measure} here.", reasons, ())
    if board.pool.mode == "own":
        return Finding(
            f"Each judge on items of its own ({measure}): the numbers do not rank the judges.",
            (
                "Every judge is told on all labelled items that it scored and has not seen. To compare them, "
                "choose the items common to all.",
            ),
            tuple(_undefined(board)),
        )
    best = defined[0]
    verb = "stands highest in agreement with people" if len(board.rows) > 1 else "agrees with people"
    headline = f"{best.name} {verb}: {told(best.alignment)} ({measure}), {_items(board)}."
    details = [*_standing(board, len(defined)), *_against_people(board, best, measure)]
    return Finding(headline, tuple(details), tuple(_cautions(board, best)))


def told(alignment: Alignment | None) -> str:
    """`0.41 [0.35, 0.47]`, or "—" for what is undefined."""
    if alignment is None or alignment.value is None:
        return "—"
    if alignment.interval is None:
        return f"{alignment.value:.2f} (no interval)"
    return f"{alignment.value:.2f} [{alignment.interval.low:.2f}, {alignment.interval.high:.2f}]"


def named(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and 3 others`."""
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1} others"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _items(board: Leaderboard) -> str:
    pool = board.pool
    whole = f"on {pool.n_common:,} items from {board.n_sources:,} source{'' if board.n_sources == 1 else 's'}"
    if pool.mode == "all":
        return whole
    whom = "none of these judges has seen" if len(board.rows) > 1 else "it has not seen"
    return f"{whole} whose labels {whom}"


def _standing(board: Leaderboard, n_defined: int) -> list[str]:
    """Than whom the highest judge is shown to be better, whom it cannot be told apart from, and what has no test."""
    if board.pairwise is None or n_defined < 2:
        return []
    p = board.pairwise.p_holm[0]
    better = [board.rows[k].name for k in range(1, n_defined) if p[k] <= ALPHA]
    alike = [board.rows[k].name for k in range(1, n_defined) if not np.isnan(p[k]) and p[k] > ALPHA]
    untested = [board.rows[k].name for k in range(1, n_defined) if np.isnan(p[k])]
    parts = []
    if better:
        parts.append(f"significantly better than {named(better)}")
    if alike:
        parts.append(f"not to be told apart from {named(alike)}")
    said = []
    if parts:
        said.append(f"It is {', and '.join(parts)} (paired test over sources, Holm-corrected at {ALPHA:g}).")
    if untested:
        said.append(f"Its difference from {named(untested)} has {NO_TEST}.")
    return said


def _against_people(board: Leaderboard, best: Row, measure: str) -> list[str]:
    """Where the best judge stands beside a person, against the same targets and no stronger than the interval."""
    if best.people is None:
        return [f"How well people agree with each other is not known, {NO_SINGLE_RATINGS}: {board.ceiling.reason}"]
    words = beside_people_words(best.people, measure, judge=best.name)
    return [f"{words} {margin_words()}" if best.people.standing == "level" else words]


def _cautions(board: Leaderboard, best: Row) -> list[str]:
    said = []
    interval = best.alignment.interval
    if interval is None:
        said.append("There is no interval: it needs 2 sources or more, and values that vary between them.")
    elif interval.low <= 0.0 <= interval.high:
        said.append("Its interval holds 0, so even the best judge may agree with people only by chance.")
    flattered = [row.name for row in board.rows if row.n_seen_used]
    if flattered:
        said.append(
            f"These items include labels that chose or fitted {named(flattered)}, which flatters. "
            "Quote the unseen items."
        )
    if 2 <= board.n_sources < LEAST_SOURCES:
        said.append(f"Only {board.n_sources} sources: intervals are wide, and no difference is tested ({TOO_FEW}).")
    if board.measure.level == "system":
        said.append(f"System level rests on {best.alignment.n} systems; a difference needs to be large to show.")
        if board.n_sources < SHORT_BELOW:
            said.append(f"The interval holds for these systems, and is {SHORT}.")
    return [*said, *_undefined(board)]


def _undefined(board: Leaderboard) -> list[str]:
    return [
        f"{row.name} has no alignment: {row.alignment.reason}."
        for row in board.rows
        if row.alignment.value is None and not board.problem
    ]
