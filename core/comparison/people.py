"""The Alternative Annotator Test of every judge of a leaderboard, on the items that each stands on."""

from __future__ import annotations

from collections.abc import Sequence

from core.comparison.board import Leaderboard
from core.errors import AspectError
from core.records import GoldenSet, JudgeScores
from core.stats import AnnotatorTest, annotator_test, rater_table


def annotator_tests(
    golden: GoldenSet,
    board: Leaderboard,
    judges: Sequence[JudgeScores],
    *,
    epsilon: float,
    standardise: bool = False,
    clustered: bool = False,
) -> tuple[AnnotatorTest | None, ...]:
    """One test a row of `board`, which was made of `judges`; empty without single ratings.

    None for a judge on a scale of its own, unless `standardise` takes mean and spread out of everybody's labels: its
    scores are no labels.
    """
    try:
        table = rater_table(golden, board.aspect)
    except AspectError:
        return ()
    found: list[AnnotatorTest | None] = []
    for row in board.rows:
        judge = judges[row.place]
        if not standardise and not (judge.on_scale and judge.higher_is_better):
            found.append(None)
            continue
        at = board.pool.own[row.place]
        found.append(
            annotator_test(
                table.values[:, at],
                judge.upward[at],
                golden.source_codes[at],
                epsilon=epsilon,
                standardise=standardise,
                clustered=clustered,
                raters=table.raters,
                panel=table.panel,
            )
        )
    return tuple(found)
