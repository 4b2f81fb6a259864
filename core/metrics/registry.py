"""Names → metrics: the one place that knows every kind; and metrics of numbers made elsewhere.

===============================================  =======================================================================
``overlap`` ``overlap_pairs``                  share of the target's words, or pairs of words, found in the source
``rouge1`` ``rouge2`` ``rougeL``               ROUGE F1, mean over the references
``rouge1_source_p`` …                          ROUGE precision against the source
``bleu`` ``chrf``                              against the references
``similarity`` ``similarity_reference``        MiniLM cosine with the source, or with the best reference
``metric_<name>``                              a column of the upload
``nli:MODEL``                                  entailment of the target by the source, best chunk of a long source
``regression:MODEL`` ``…_reference:MODEL``     a trained score next to the source (SumBLEURT) or the reference (BLEURT)
``bertscore:MODEL[@LAYER]`` ``…_source:…``     BERTScore F1 against the best reference, or the source
``likelihood:MODEL`` ``…_reference:MODEL``     mean log-likelihood of the target given the source or a reference
===============================================  =======================================================================

MODEL is a Hugging Face id or a folder.  Scores that come from elsewhere (a
calibrated judge, replies, RepEval) become metrics by `given_scores`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from core.errors import UsageError
from core.judging.judge_protocol import OnProgress
from core.metrics.base import FIELDS, Metric, MetricScores, Need, scores_of
from core.metrics.checkpoints import bertscore, likelihood, nli, regression, similarity
from core.metrics.word_metrics import bleu, chrf, overlap, rouge
from core.records import GoldenSet, Item, JudgeScores, Unscored, content_digest

PREFIX = "metric_"
LOWER_IS_BETTER = frozenset(
    "ter hter wer cer per mer wil levenshtein perplexity ppl nll surprisal mae mse rmse misspel misspellings".split()
)
"""Words in a column's name that say an error, a distance or a surprise is counted."""

_LOWER_NAMES = frozenset({"lev_dist", "edit_dist", "edit_distance"})

_PLAIN: dict[str, tuple[str, Callable[[str], Metric]]] = {
    "overlap": ("Word overlap with the source", overlap),
    "overlap_pairs": ("Word-pair overlap with the source", partial(overlap, pairs=True)),
    **{f"rouge{kind}": (f"ROUGE-{kind}", partial(rouge, kind=kind)) for kind in "12L"},
    **{
        f"rouge{kind}_source_p": (f"ROUGE-{kind} precision (source)", partial(rouge, kind=kind, source=True))
        for kind in "12L"
    },
    "bleu": ("BLEU", bleu),
    "chrf": ("chrF", chrf),
    "similarity": ("Similarity to the source", similarity),
    "similarity_reference": ("Similarity to the reference", partial(similarity, against="references")),
}
"""Names that need no checkpoint, in the order in which they are offered, with a display name."""

_WITH_MODEL: dict[str, tuple[str, Callable[[str, str], Metric]]] = {
    "nli": ("Entailment", nli),
    "regression": ("Trained score (source)", regression),
    "regression_reference": ("Trained score (reference)", partial(regression, against="references")),
    "bertscore": ("BERTScore", bertscore),
    "bertscore_source": ("BERTScore (source)", partial(bertscore, against="source")),
    "likelihood": ("Likelihood (source)", likelihood),
    "likelihood_reference": ("Likelihood (reference)", partial(likelihood, against="references")),
}
"""What may stand before ``:MODEL``."""


def make_metric(name: str, *, golden: GoldenSet | None = None) -> Metric:
    """The metric that `name` means (the table above).

    `golden` is needed for ``metric_`` columns.  Loads nothing: a missing model shows when it scores.  UsageError for a
    name that means nothing, or a column that is not there.
    """
    given = name.strip()
    if given.startswith(PREFIX):
        if golden is None:
            raise UsageError(f"{given[:60]} is a column of a golden set; name that golden set.")
        return metric_column(golden, given)
    if golden is not None and golden.kind == "pair":
        raise UsageError(f"{given[:60]} rates one text, and the items of {golden.name} are pairs of texts.")
    if given in _PLAIN:
        return _PLAIN[given][1](given)
    if model := model_of(given):
        return _WITH_MODEL[given.partition(":")[0]][1](given, model)
    if given.partition(":")[0] in ("offline", "repeval", "judge"):
        raise UsageError(f"The scores of {given[:60]!r} are computed elsewhere; hand them in with given_scores.")
    kinds = ", ".join(f"{kind}:MODEL" for kind in _WITH_MODEL)
    raise UsageError(
        f"No assistant is called {given[:60]!r}. Known: {', '.join(_PLAIN)}, metric_<column>; with a model: "
        f"{kinds} (MODEL is a Hugging Face id or a folder)."
    )


def metrics_for(golden: GoldenSet) -> list[Metric]:
    """Every metric that needs no checkpoint, and one for each metric column; `missing` tells which cannot run.

    None of the first kind rates pairs of texts.
    """
    plain = [] if golden.kind == "pair" else [make_metric(name) for name in _PLAIN]
    return plain + [metric_column(golden, column) for column in golden.metrics]


def readable(judge: JudgeScores) -> JudgeScores:
    """`judge` under its display name: "ROUGE-2" for ``rouge2``.  Other judges than metrics keep the name they have."""
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
    """The MODEL (id or folder) that the metric of that name runs; "" for one that runs none of a person's choice."""
    kind, _, model = name.strip().partition(":")
    return model.strip() if kind in _WITH_MODEL else ""


# ── numbers made elsewhere: columns of the upload, scores by item id, a fitted RepEval score ─────────────────────


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

    settings = content_digest("scores", numbers)
    cost = "none: the numbers are there"
    return Metric(name, measures, frozenset(), cost, scorer, higher_is_better, settings=settings)


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


def fitted_repeval(name: str, state: Any, *, ray: str = "", code: tuple[str, ...] = ()) -> Metric:
    """RepEval fitted elsewhere: the model reads the texts, and kept directions rate its hidden states.

    `state` is what `RepEvalScorer.as_json` wrote.  The model is loaded with the first items and held as long as the
    metric is; on the Ray cluster at the address `ray`, where one is given.  `code` lists the models whose own Python
    may run.  JudgeError for a damaged state.
    """
    from core.repeval.projection import RepEvalScorer, ScorerWithModel

    fitted = RepEvalScorer.from_json(state)
    reader = ScorerWithModel(fitted, ray, code)

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        values = reader.score(items, on_progress)
        lost = tuple(
            Unscored(items[int(k)].item_id, "no verdict", "A hidden state of this text is not a finite number.")
            for k in np.flatnonzero(np.isnan(values))
        )
        return MetricScores(values, lost)

    needs: list[Need] = [need for need in FIELDS if need in fitted.extraction.needs]
    if not fitted.embedded:
        needs.append("model")
    return Metric(
        name=name,
        measures=f"RepEval: {len(fitted.cells)} directions in the hidden states of {fitted.model}.",
        needs=frozenset(needs),
        cost="one model run for each distinct text" + ("" if fitted.embedded else "; slow without a GPU"),
        scorer=scorer,
        settings=content_digest("repeval", fitted.as_json()),
    )
