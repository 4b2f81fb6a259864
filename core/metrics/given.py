"""Numbers made elsewhere: the upload's metric columns, scores handed in by item id, and a fitted RepEval score."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.errors import UsageError
from core.judging.base import OnProgress
from core.metrics.base import FIELDS, Metric, MetricScores, Need, scores_of
from core.records import GoldenSet, Item, Unscored, content_digest

PREFIX = "metric_"
LOWER_IS_BETTER = frozenset(
    "ter hter wer cer per mer wil levenshtein perplexity ppl nll surprisal mae mse rmse misspel misspellings".split()
)
"""Words in a column's name that say an error, a distance or a surprise is counted."""

_LOWER_NAMES = frozenset({"lev_dist", "edit_dist", "edit_distance"})


def given_scores(
    name: str, measures: str, scores: Mapping[str, float | None], *, higher_is_better: bool = True
) -> Metric:
    """A metric that answers from `scores` by item id; an item without a number there is Unscored."""
    numbers = {item_id: None if value is None or not np.isfinite(value) else value for item_id, value in scores.items()}

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        values = np.array([numbers.get(item.item_id) for item in items], dtype=np.float64)
        reason = f"{name} holds no number for this item."
        on_progress(len(items), len(items))
        return scores_of(items, values, dict.fromkeys(np.flatnonzero(np.isnan(values)).tolist(), reason))

    return Metric(
        name=name,
        measures=measures,
        low=None,
        high=None,
        needs=frozenset(),
        cost="none: the numbers are there",
        scorer=scorer,
        higher_is_better=higher_is_better,
        settings=content_digest("scores", numbers),
    )


def metric_column(golden: GoldenSet, name: str) -> Metric:
    """The uploaded column `name` (with or without ``metric_``).  UsageError when the golden set has none such.

    The direction comes from the name (`lower_is_better`).
    """
    column = name.removeprefix(PREFIX)
    if column not in golden.metrics:
        there = ", ".join(PREFIX + known for known in golden.metrics) or "none"
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


def fitted_repeval(name: str, state: Any) -> Metric:
    """RepEval fitted elsewhere: the model reads the texts, and kept directions rate its hidden states.

    `state` is what `RepEvalScorer.as_json` wrote.  The model is loaded with the first items and held as long as the
    metric is.  JudgeError for a damaged state.
    """
    from core.repeval.portable import RepEvalScorer, ScorerWithModel

    fitted = RepEvalScorer.from_json(state)
    reader = ScorerWithModel(fitted)

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        values = reader.score(items, on_progress)
        lost = tuple(
            Unscored(items[int(k)].item_id, "no verdict", "A hidden state of this text is no finite number.")
            for k in np.flatnonzero(np.isnan(values))
        )
        return MetricScores(values, lost)

    needs: list[Need] = [need for need in FIELDS if need == fitted.extraction.beside]
    if not fitted.embedded:
        needs.append("model")
    return Metric(
        name=name,
        measures=f"RepEval: {len(fitted.cells)} directions in the hidden states of {fitted.model}.",
        low=None,
        high=None,
        needs=frozenset(needs),
        cost="one model run for each distinct text" + ("" if fitted.embedded else "; slow without a GPU"),
        scorer=scorer,
        settings=content_digest("repeval", fitted.as_json()),
    )
