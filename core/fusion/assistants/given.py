"""Numbers that are already there: the upload's metric columns, and scores of any other judge handed in by item id."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from core.errors import UsageError
from core.fusion.assistants.base import Assistant, AssistantScores, scores_of
from core.judging.base import OnProgress
from core.records import GoldenSet, Item, content_digest

PREFIX = "metric_"
LOWER_IS_BETTER = frozenset(
    "ter hter wer cer per mer wil levenshtein perplexity ppl nll surprisal mae mse rmse misspel misspellings".split()
)
"""Words in a column's name that say an error, a distance or a surprise is counted."""

_LOWER_NAMES = frozenset({"lev_dist", "edit_dist", "edit_distance"})


def given_scores(
    name: str,
    measures: str,
    scores: Mapping[str, float | None],
    *,
    low: float | None = None,
    high: float | None = None,
    higher_is_better: bool = True,
    cost: str = "none: the numbers are there",
) -> Assistant:
    """An assistant that answers from `scores` by item id; an item without a number there is Unscored.

    For what is computed elsewhere: a calibrated judge's verdicts, recorded replies, RepEval.
    """
    numbers = {item_id: None if value is None or not np.isfinite(value) else value for item_id, value in scores.items()}

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> AssistantScores:
        found: dict[int, float] = {}
        reasons: dict[int, str] = {}
        for position, item in enumerate(items):
            value = numbers.get(item.item_id)
            if value is None:
                reasons[position] = f"{name} holds no number for this item."
            else:
                found[position] = value
        on_progress(len(items), len(items))
        return scores_of(items, found, reasons)

    return Assistant(
        name=name,
        measures=measures,
        low=low,
        high=high,
        needs=frozenset(),
        cost=cost,
        scorer=scorer,
        higher_is_better=higher_is_better,
        settings=content_digest("scores", numbers),
    )


def metric_column(golden: GoldenSet, name: str) -> Assistant:
    """The uploaded column `name` (with or without ``metric_``).  UsageError when the golden set has none such.

    The direction comes from the name (`lower_is_better`); `Assistant.flipped` corrects a wrong guess.
    """
    column = name.removeprefix(PREFIX)
    if column not in golden.metrics:
        there = ", ".join(PREFIX + one for one in golden.metrics) or "none"
        raise UsageError(f"The golden set has no column {PREFIX + column[:60]!r}; it has {there}.")
    return given_scores(
        PREFIX + column,
        f"The uploaded column {PREFIX}{column}.",
        dict(zip(golden.item_ids, golden.metrics[column], strict=True)),
        higher_is_better=not lower_is_better(column),
    )


def lower_is_better(column: str) -> bool:
    """Whether the column's name is that of an error, a distance or a surprise.

    >>> [lower_is_better(name) for name in ("ter", "gpt2_ppl", "lev_dist", "character_f")]
    [True, True, True, False]
    """
    words = re.split(r"[^a-z]+", column.lower())
    return column.lower() in _LOWER_NAMES or not LOWER_IS_BETTER.isdisjoint(words)
