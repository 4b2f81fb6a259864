"""Make metrics from their names, from columns of a file, or from a fitted RepEval score.

The *target* is the text to rate. MODEL is a Hugging Face id or a folder.

=============================================  =========================================================================
``overlap`` ``overlap_pairs``                  share of the target's words, or pairs of words, found in the source
``rouge1`` ``rouge2`` ``rougeL``               ROUGE F1, mean over the references
``rouge1_source_p`` …                          ROUGE precision against the source
``bleu`` ``chrf``                              BLEU and chrF against the references
``similarity`` ``similarity_reference``        MiniLM cosine with the source, or with the best reference
``metric_<name>``                              a column of the uploaded file
``nli:MODEL``                                  entailment of the target by the source, best chunk of a long source
``regression:MODEL`` ``…_reference:MODEL``     trained score, given the source (SumBLEURT) or the reference (BLEURT)
``bertscore:MODEL``                            BERTScore F1 against the best reference
``likelihood:MODEL`` ``…_reference:MODEL``     mean log-likelihood of the target given the source or a reference
=============================================  =========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from core.errors import UsageError
from core.judging.judge_protocol import OnProgress
from core.metrics.base import FIELDS, Metric, MetricScores, Need, scores_of
from core.metrics.checkpoints import bertscore, likelihood, nli, regression, similarity
from core.metrics.word_metrics import overlap, rouge, sacrebleu
from core.records import GoldenSet, Item, JudgeScores, Unscored

PREFIX = "metric_"
LOWER_IS_BETTER = frozenset(
    "ter hter wer cer per mer wil levenshtein perplexity ppl nll surprisal mae mse rmse misspel misspellings".split()
)
"""Words in a column's name for an error, a distance or a perplexity."""

_LOWER_NAMES = frozenset({"lev_dist", "edit_dist", "edit_distance"})

_PLAIN: dict[str, tuple[str, Callable[[str], Metric]]] = {
    "overlap": ("Word overlap with the source", overlap),
    "overlap_pairs": ("Word-pair overlap with the source", partial(overlap, pairs=True)),
    **{f"rouge{kind}": (f"ROUGE-{kind}", partial(rouge, kind=kind)) for kind in "12L"},
    **{
        f"rouge{kind}_source_p": (f"ROUGE-{kind} precision (source)", partial(rouge, kind=kind, source=True))
        for kind in "12L"
    },
    "bleu": ("BLEU", sacrebleu),
    "chrf": ("chrF", sacrebleu),
    "similarity": ("Similarity to the source", similarity),
    "similarity_reference": ("Similarity to the reference", partial(similarity, against="references")),
}
"""Metrics without a checkpoint: name → display name and maker, in the order in which screens offer them."""

_WITH_MODEL: dict[str, tuple[str, Callable[[str, str], Metric]]] = {
    "nli": ("Entailment", nli),
    "regression": ("Trained score (source)", regression),
    "regression_reference": ("Trained score (reference)", partial(regression, against="references")),
    "bertscore": ("BERTScore", bertscore),
    "likelihood": ("Likelihood (source)", likelihood),
    "likelihood_reference": ("Likelihood (reference)", partial(likelihood, against="references")),
}
"""Metrics that run a checkpoint: prefix before ``:MODEL`` → display name and maker."""


def make_metric(name: str, *, golden: GoldenSet | None = None) -> Metric:
    """Make the metric called `name`; the module docstring lists the names.

    `golden` is needed for ``metric_`` columns. Models are loaded only when the metric scores. Raises UsageError for
    an unknown name or column.
    """
    given = name.strip()
    if given.startswith(PREFIX):
        if golden is None:
            raise UsageError(f"{given[:60]} is a column of a golden set. Specify the golden set that contains it.")
        return metric_column(golden, given)
    if golden is not None and golden.kind == "pair":
        raise UsageError(
            f"{given[:60]} rates single texts, but the items of {golden.name} are pairs of "
            "texts. Use a column whose name starts with metric_."
        )
    if given in _PLAIN:
        return _PLAIN[given][1](given)
    if model := model_of(given):
        return _WITH_MODEL[given.partition(":")[0]][1](given, model)
    kinds = ", ".join(f"{kind}:MODEL" for kind in _WITH_MODEL)
    raise UsageError(
        f"Metric {given[:60]!r} not found. Choose from: {', '.join(_PLAIN)}, metric_<column>; with a model: {kinds} "
        "(MODEL is a Hugging Face id or a folder)."
    )


def metrics_for(golden: GoldenSet) -> list[Metric]:
    """List the metrics for `golden` that need no checkpoint, including one for each metric column.

    `Metric.missing` says which of them cannot run. For pairs of texts, only the metric columns are listed.
    """
    plain = [] if golden.kind == "pair" else [make_metric(name) for name in _PLAIN]
    return plain + [metric_column(golden, column) for column in golden.metrics]


def readable(judge: JudgeScores) -> JudgeScores:
    """Return a metric renamed for display, such as "ROUGE-2" for ``rouge2``; return other judges unchanged."""
    if judge.kind != "metric":
        return judge
    name = judge.name
    kind, _, model = name.partition(":")
    if name in _PLAIN:
        name = _PLAIN[name][0]
    elif model and kind in _WITH_MODEL:
        name = f"{_WITH_MODEL[kind][0]} by {model.rstrip('/').rpartition('/')[2]}"
    elif name.startswith(PREFIX):
        name = f"{name.removeprefix(PREFIX)} (column)"
    return replace(judge, name=name)


def model_of(name: str) -> str:
    """Return the MODEL (id or folder) in a metric's name; "" for a metric without a model."""
    kind, _, model = name.strip().partition(":")
    return model.strip() if kind in _WITH_MODEL else ""


# ── numbers made elsewhere: columns of the upload, a fitted RepEval score ────────────────────────────────────────


def metric_column(golden: GoldenSet, name: str) -> Metric:
    """Make a metric from the uploaded column `name` (with or without the prefix ``metric_``).

    The metric looks up its numbers by item id. Whether lower is better follows from the name (`lower_is_better`).
    Raises UsageError if the golden set has no such column.
    """
    column = name.removeprefix(PREFIX)
    if column not in golden.metrics:
        there = ", ".join(PREFIX + known for known in golden.metrics) or "none"
        raise UsageError(f"The golden set has no column {PREFIX + column[:60]!r}. Its metric columns: {there}.")
    numbers = dict(zip(golden.item_ids, golden.metrics[column], strict=True))

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        values = np.array([numbers.get(item.item_id) for item in items], dtype=np.float64)
        reason = f"The column {PREFIX}{column} has no number for this item."
        on_progress(len(items), len(items))
        return scores_of(items, values, dict.fromkeys(np.flatnonzero(np.isnan(values)).tolist(), reason))

    measures, cost = f"The uploaded column {PREFIX}{column}.", "free; the file contains the numbers"
    return Metric(PREFIX + column, measures, frozenset(), cost, scorer, not lower_is_better(column))


def lower_is_better(column: str) -> bool:
    """Return whether a column is named after an error, a distance or a perplexity, so that lower is better.

    >>> [lower_is_better(name) for name in ("ter", "gpt2_ppl", "lev_dist", "character_f")]
    [True, True, True, False]
    """
    words = re.split(r"[^a-z]+", column.lower())
    return column.lower() in _LOWER_NAMES or not LOWER_IS_BETTER.isdisjoint(words)


def fitted_repeval(name: str, state: Any, *, ray: str = "") -> Metric:
    """Make a metric from a fitted RepEval score, which projects the hidden states of a model onto stored directions.

    The metric loads the model at the first call and then keeps it in memory.

    Args:
        name: Name of the metric.
        state: JSON from `RepEvalScorer.as_json`.
        ray: Address of a Ray cluster on which the model runs; "" runs it on this machine.

    Raises:
        JudgeError: `state` is damaged.
    """
    from core.repeval.projection import RepEvalScorer, ScorerWithModel

    fitted = RepEvalScorer.from_json(state)
    reader = ScorerWithModel(fitted, ray)

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        values = reader.score(items, on_progress)
        detail = "The model's hidden state for this text contains infinite or undefined numbers."
        lost = (Unscored(items[k].item_id, "no verdict", detail) for k in np.flatnonzero(np.isnan(values)).tolist())
        return MetricScores(values, tuple(lost))

    needs: set[Need] = {need for need in FIELDS if need in fitted.extraction.needs}
    cost = "one model run for each distinct text"
    if not fitted.embedded:
        needs.add("model")
        cost += "; slow without a GPU"
    measures = f"RepEval: {len(fitted.cells)} directions in the hidden states of {fitted.model}."
    return Metric(name, measures, frozenset(needs), cost, scorer)
